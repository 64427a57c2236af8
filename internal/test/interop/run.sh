#!/usr/bin/env bash
# Runs the official TypeScript clients of MCP, of both eras, against the quickstart over
# standard input and output and over HTTP, and then the tests in peers. Without
# this script, the tests that need node and those of the command psi with published
# servers are skipped.
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
