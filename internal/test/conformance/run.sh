#!/usr/bin/env bash
# Runs the MCP conformance suite against psi's conformance server and client, for every
# revision for which it has scenarios. It fails on any failure or warning, including those in
# scenarios that the suite does not score, unless accepted.txt lists it.
#
#   bash internal/test/conformance/run.sh
#
# It needs Go, node and npm. The suite, and a newer node if the installed one is too old,
# are installed beside this script, in the versions of package-lock.json. The results are
# kept in internal/test/conformance/results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
exec </dev/null

suite=internal/test/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js
oldest_node=22

results=$PWD/internal/test/conformance/results/server
server=

finish() {
	if [ -n "$server" ]; then
		kill -KILL "$server" 2>/dev/null || true
	fi
}
trap finish EXIT

fail() {
	echo "conformance: $*" >&2
	exit 1
}

node_is_new() {
	command -v node >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge "$oldest_node" ]
}

# prepare installs the suite without running scripts of packages, and builds what it tests.
# A node for this machine is an optional dependency.
prepare() {
	local ci=(npm ci --prefix internal/test/conformance --ignore-scripts --no-audit --no-fund --loglevel=error) own
	if node_is_new; then
		"${ci[@]}" --omit=optional
	else
		"${ci[@]}"
		own=$(echo internal/test/conformance/node_modules/node-*/bin)
		[ -x "$own/node" ] || fail "node $oldest_node or newer must be installed on $(uname -sm)"
		PATH=$PWD/$own:$PATH
	fi
	rm -rf "$results"
	mkdir -p "$results"
	go build -o "$results/server" ./internal/test/conformance/server
	go build -o "$results/client" ./internal/test/conformance/client
	go build -o "$results/authorization" ./internal/test/conformance/authorization
	go build -o "$results/report" ./internal/test/conformance/report
}

# start starts the server on a free port and sets url.
start() {
	"$results/server" -http 127.0.0.1:0 2>"$results/server.log" &
	server=$!
	for _ in $(seq 200); do
		url=$(grep -m 1 '^http://' "$results/server.log" || true)
		[ -z "$url" ] || return 0
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	cat "$results/server.log" >&2
	fail "the server did not start"
}

# stop shuts the server down as an operator would, which must succeed. The server may only
# have logged its URL, and the rejection of requests that the suite sends to a foreign host or
# with a state that it has changed.
stop() {
	local status=0
	kill -TERM "$server"
	wait "$server" || status=$?
	server=
	[ "$status" -eq 0 ] || fail "the server did not shut down in good order: exit status $status"
	if [ "$(grep -cvE 'refused reason="the host .*evil\.example\.com|a requestState was refused' "$results/server.log")" -ne 1 ]; then
		cat "$results/server.log" >&2
		fail "the server had something to complain of"
	fi
}

legs=()

# leg NAME SCENARIOS OPTION... runs a leg of the suite. The exit status of the suite is
# ignored: report is stricter, and checks the number of scenarios.
leg() {
	local name=$1 scenarios=$2
	shift 2
	echo "=== $name"
	node "$suite" server --url "$url" --output-dir "$results/$name" "$@" \
		>"$results/$name.log" 2>&1 || true
	legs+=("$name=$scenarios")
}

# client_leg NAME SCENARIOS OPTION... runs a leg of the suite against the client, with all
# scenarios in one run.
client_leg() {
	local name=client-$1 scenarios=$2
	shift 2
	echo "=== $name"
	node "$suite" client --command "$results/client" --output-dir "$results/$name" "$@" \
		>"$results/$name.log" 2>&1 || true
	legs+=("$name=$scenarios")
}

# authorization_leg NAME SCENARIOS OPTION... runs a leg of the suite against package authserver.
authorization_leg() {
	local name=authorization-$1 scenarios=$2
	shift 2
	echo "=== $name"
	"$results/authorization" node "$suite" authorization --output-dir "$results/$name" "$@" \
		>"$results/$name.log" 2>&1 || true
	legs+=("$name=$scenarios")
}

prepare
authorization_leg 2025-11-25 2 --spec-version 2025-11-25
authorization_leg 2026-07-28 2 --spec-version 2026-07-28
client_leg 2025-03-26 2 --suite all --spec-version 2025-03-26
client_leg 2025-06-18 5 --suite all --spec-version 2025-06-18
client_leg 2025-11-25 25 --requirements 2025-11-25
client_leg 2026-07-28 39 --requirements 2026-07-28
client_leg all 48 --suite all
start
leg 2025-03-26 1 --suite all --spec-version 2025-03-26
leg 2025-06-18 27 --suite all --spec-version 2025-06-18
leg 2025-11-25 33 --requirements 2025-11-25
leg 2026-07-28 50 --requirements 2026-07-28
leg all 65 --suite all
stop
"$results/report" -accepted internal/test/conformance/accepted.txt "$results" "${legs[@]}"
