#!/usr/bin/env bash
# Runs every fuzz test of the module, one after another, each for an equal share of the
# time, and prints a summary. If a fuzz test fails, the others still run, and the script
# fails at the end. It needs nothing but Go.
#
#   bash internal/test/fuzz.sh [TIME]
#
# TIME is the total for all fuzz tests, such as 90s, 45m or 8h; the default is 60m.
# Compiling them takes extra time on the first run. FUZZFLAGS holds additional flags for
# go test, such as -parallel=1. Interesting inputs are kept in the build cache, and
# failing inputs in testdata/fuzz of their package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec </dev/null

# seconds prints a time in seconds.
seconds() {
	local number=${1%[smh]}
	case $number in
	'' | *[!0-9]*)
		echo "fuzz: the time $1 is none; write 90s, 45m or 8h" >&2
		return 1
		;;
	esac
	case $1 in
	*h) echo $((number * 3600)) ;;
	*m) echo $((number * 60)) ;;
	*) echo "$number" ;;
	esac
}

# fuzz_tests prints the package and the name of every fuzz test.
fuzz_tests() {
	go test -list '^Fuzz' ./... | awk '
		/^Fuzz/ { names[++n] = $1 }
		/^ok/   { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }'
}

# row adds a fuzz test to the table, with the counts from the last line of its output that
# has any. A test that ran out of time early has only tried its initial inputs.
row() {
	local package=$1 name=$2 result=$3 log=$4 execs new
	read -r execs new < <(sed -n \
		-e 's/.*execs: \([0-9]*\).*new interesting: \([0-9]*\).*/\1 \2/p' \
		-e 's/.*baseline coverage: \([0-9]*\).*/\1 0/p' "$log" | tail -n 1; echo 0 0)
	printf '%-55s %12s %9s  %s\n' "${package#*/*/*/} $name" "$execs" "$new" "$result" >>"$table"
}

total=$(seconds "${1:-60m}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=$work/table
tests=$(fuzz_tests)
count=$(grep -c . <<<"$tests") || {
	echo "fuzz: there are no fuzz tests" >&2
	exit 1
}
share=$((total * 1000 / count))
[ "$share" -ge 1000 ] || share=1000
failed=0

while read -r package name; do
	echo "--- $package $name"
	log=$work/log result=ok
	# Minimizing an input may take a minute unless it is limited.
	# shellcheck disable=SC2086 # several flags
	if ! go test -run '^$' -fuzz "^$name\$" -fuzztime "${share}ms" -fuzzminimizetime 100x ${FUZZFLAGS-} "$package" 2>&1 | tee "$log"; then
		# If the time is up while an input is being minimized, go test may report a
		# failure without a failing input.
		if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
			result="ok, stopped late"
		else
			result=FAILED failed=$((failed + 1))
		fi
	fi
	row "$package" "$name" "$result" "$log"
done <<<"$tests"

printf '\n%-55s %12s %9s  %s\n' "fuzz test" "executions" "new" "result"
cat "$table"
awk -v n="$count" -v failed="$failed" '{ execs += $3 } END { printf "%d fuzz tests, %d executions, %d failed\n", n, execs, failed }' "$table"
[ "$failed" -eq 0 ]
