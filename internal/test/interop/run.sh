#!/usr/bin/env bash
# Runs the official TypeScript clients of MCP, of both eras, against the quickstart over
# standard input and output and over HTTP, then the tests in peers, and the MCP Inspector in a
# browser, if there is one. Without this script, the tests that need node and those of the
# command psi with published servers are skipped.
#
#   bash internal/test/interop/run.sh
#
# It needs Go, node 20 or newer, and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
go build -o "$work/quickstart" ../../../examples/quickstart
node main.mjs "$work/quickstart"
PSI_INTEROP=1 go -C peers test -count=1 -timeout 8m ./...
if PSI_BROWSER=$(bash ../browser/run.sh --find); then
	PSI_INTEROP=1 PSI_BROWSER=$PSI_BROWSER go -C ../browser test -count=1 -run TestInspectorLogsIn .
fi
