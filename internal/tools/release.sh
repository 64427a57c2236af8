#!/usr/bin/env bash
# Makes the tags of a version, and checks that they can be used:
#
#   bash internal/tools/release.sh v0.1.0        # in a scratch copy of HEAD
#   bash internal/tools/release.sh v0.1.0 --tag  # then commits and tags here, and pushes nothing
#
# A version has a tag for the root module and one for each nested module that programs import.
# All nested modules require them in this version; their replace directives, which other
# modules ignore, stay. The check is a program in a module of its own: it gets every module by
# its tag, builds the packages, tests the server of the README, and installs what the docs say
# can be installed. The examples must find the modules without their replace directives, as
# they say to those who copy them. Other modules come from the module cache if they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
exec </dev/null

root=github.com/go-psi/psi
version=${1:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
	echo "usage: release.sh VERSION [--tag], such as v0.1.0" >&2
	exit 2
fi

# nested prints the directories of the nested modules; published, of those that programs import.
nested() { git ls-files '*/go.mod' | sed 's|/go.mod$||' | sort; }
published() { nested | grep -vE '^(examples|internal)/'; }

# make_tags commits the requirements of the nested modules, and makes the tags.
make_tags() {
	local dir module
	for dir in $(nested); do
		for module in "$root" $(published | sed "s|^|$root/|"); do
			if grep -qE "^(require)?[[:space:]]+$module v" "$dir/go.mod"; then
				go mod edit -require="$module@$version" "$dir/go.mod"
			fi
		done
		git add "$dir/go.mod"
	done
	git diff --cached --quiet || git commit -q -m "Require psi $version in the nested modules"
	git tag "$version"
	for dir in $(published); do
		git tag "$dir/$version"
	done
}

# quietly runs a command, and prints what it says if it fails.
quietly() {
	local output
	output=$("$@" 2>&1) || { echo "$*: $output" >&2; return 1; }
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/origin" "$scratch/user"
git archive HEAD | tar -x -C "$scratch/origin"
(
	cd "$scratch/origin"
	export GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL=release@localhost GIT_COMMITTER_NAME=release GIT_COMMITTER_EMAIL=release@localhost
	git init -q -b main
	git add -A
	git commit -q -m "HEAD"
	make_tags
)

# The go command fetches the modules of psi from the scratch copy, as it would from the host.
proxy="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
paths=$(git grep -hoE 'go (install|run) '"$root"'[^ @`]*@' -- README.md 'docs/*.md' 'mcp/*.go' | sed -E 's/^go [a-z]+ //; s/@$//' | sort -u)
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$scratch/origin.insteadOf" GIT_CONFIG_VALUE_0="https://$root"
export GOPROXY=$proxy GOPRIVATE="$root" GOMODCACHE="$scratch/mod" GOBIN="$scratch/bin" GOFLAGS="-modcacherw -trimpath -mod=mod" GOWORK=off

latest="latest"
cd "$scratch/user"
cp "$scratch"/origin/examples/hello/main{,_test}.go .
quietly go mod init example.com/user
modules=("$root")
for dir in $(cd "$scratch/origin" && published); do
	modules+=("$root/$dir")
done
for module in "${modules[@]}"; do # each must bring the root with it
	modfile=$scratch/user/$(basename "$module").mod
	printf 'module example.com/user\n\ngo 1.26.0\n' >"$modfile"
	wanted=$module@$latest
	quietly go get -modfile="$modfile" "$wanted"
	for each in "$root" "$module"; do
		got=$(go list -modfile="$modfile" -m "$each")
		[ "$got" = "$each $version" ] || { echo "$module brings $got" >&2; exit 1; }
	done
	quietly go get "$wanted"
	echo "$got"
done
quietly go build "$root"/{jsonschema,mcp,mcphttp,mcpstdio,middleware}/... "${modules[@]:1}"
quietly go mod tidy
go test .
for path in $paths; do
	wanted=$path@$latest
	quietly go install "$wanted"
	echo "installed $path: $("$GOBIN/${path##*/}" version 2>&1 | head -1)"
done
for dir in $(cd "$scratch/origin" && nested | grep '^examples/'); do
	cd "$scratch/origin/$dir"
	for module in "${modules[@]}"; do
		go mod edit -dropreplace="$module"
	done
	quietly go list -m all
	echo "$dir: $(go list -m "$root")"
done

if [ "${2:-}" = --tag ]; then
	cd "$repository"
	make_tags
	echo "tagged; to publish: git push origin HEAD $version $(published | sed "s|\$|/$version|" | tr '\n' ' ')"
fi
