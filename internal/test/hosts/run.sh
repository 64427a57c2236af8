#!/usr/bin/env bash
# Lets hosts themselves say whether they are connected to examples/quickstart, as psi install has
# told them. No model is asked, and nobody logs in.
#
#   bash internal/test/hosts/run.sh
#
# It needs Go, node 20 or newer, and npm. CI does not run it: it downloads a third of a gigabyte.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server"
	rm -rf "$work"
}
trap finish EXIT

npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
node node_modules/@anthropic-ai/claude-code/install.cjs # puts its program for this machine in place
go build -o "$work/quickstart" ../../../examples/quickstart
go -C ../../../mcp/cmd/psi build -o "$work/psi" .
PATH=$PWD/node_modules/.bin:$work:$PATH
port=18181
"$work/quickstart" -http "127.0.0.1:$port" >"$work/log" 2>&1 &
server=$!
mkdir -p "$work/home/.gemini" "$work/project"
export HOME=$work/home
cd "$work/project"

# expect WHAT PATTERN COMMAND... fails unless the output of a command has a line like a pattern.
expect() {
	local what=$1 pattern=$2 output
	shift 2
	output=$("$@" 2>&1) || true
	if ! grep -qE "$pattern" <<<"$output"; then
		printf 'FAILED: %s: there is no %s in\n%s\n' "$what" "$pattern" "$output"
		exit 1
	fi
	echo "ok: $what"
}

claude mcp add own -s user -- "$work/quickstart" >/dev/null
psi install counter -yes -host claude-code -- "$work/quickstart" >/dev/null 2>&1
psi install web -yes -host claude-code "http://127.0.0.1:$port/mcp" -header 'Authorization: Bearer ${TOKEN}' >/dev/null 2>&1
export TOKEN=secret
expect "Claude Code has what it added itself" '^own: .*Connected' claude mcp list
expect "Claude Code has a command that psi installed" '^counter: .*Connected' claude mcp list
expect "Claude Code has a URL that psi installed" '^web: .*Connected' claude mcp list
expect "psi doctor reads what Claude Code wrote" 'ok: Claude Code "own"' psi doctor -host claude-code
psi uninstall counter -yes -host claude-code >/dev/null 2>&1
expect "Claude Code misses what psi uninstalled" 'No MCP server.*counter' claude mcp get counter
expect "Claude Code keeps the rest" '^own: .*Connected' claude mcp list
expect "psi calls a tool of Claude Code" '"stdout":"42"' psi call Bash 'command=echo $((6*7))' -- claude mcp serve

psi install command -yes -host gemini-cli -- "$work/quickstart" >/dev/null 2>&1
psi install web -yes -host gemini-cli "http://127.0.0.1:$port/mcp" >/dev/null 2>&1
echo "{\"$work/project\": \"TRUST_FOLDER\"}" >"$HOME/.gemini/trustedFolders.json"
expect "Gemini CLI has a command that psi installed" 'command: .*Connected' gemini mcp list
expect "Gemini CLI has a URL that psi installed" 'web: .*Connected' gemini mcp list
