#!/usr/bin/env bash
# Makes tools of public OpenAPI documents, and calls each. Nothing that it downloads becomes
# a part of psi. Without this script, the test is skipped.
#
#   bash internal/test/openapi/run.sh
#
# It needs Go and npm, and takes less than a minute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
PSI_OPENAPI="$PWD/node_modules" go test -count=1 -v .
