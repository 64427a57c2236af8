#!/usr/bin/env bash
# Has the official TypeScript clients of MCP, of both eras, talk to the quickstart
# over standard input and output and over HTTP, and then runs the tests in peers, of
# which those that need node, and those of the command psi with published servers, are
# skipped elsewhere:
#
#   bash internal/interop/run.sh
#
# It needs Go, node 20 or newer, and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
go build -o "$work/quickstart" ../../examples/quickstart
node main.mjs "$work/quickstart"
PSI_INTEROP=1 go -C peers test -count=1 -timeout 8m ./...
