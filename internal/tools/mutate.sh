#!/usr/bin/env bash
# Makes random changes to the named packages, one at a time, and reports the changes that
# no test notices; see internal/tools/mutate. It needs nothing but Go.
#
#   bash internal/tools/mutate.sh [-n 100] [-seed 1] [-workers 2] [-timeout 2m] [-tests PACKAGES] PACKAGE...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec go run ./internal/tools/mutate "$@"
