#!/usr/bin/env bash
# Copyright 2026 The psi Authors.
# SPDX-License-Identifier: MIT
#
# Lists how the public API has changed since a tag:
#
#	bash internal/tools/apidiff.sh v0.1.0
#
# From v1.0.0 on, an incompatible change of a package that docs/stability.md calls stable is an
# error.
set -euo pipefail
cd "$(dirname "$0")/../.."

tag=$1
tool=golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4
old=$(mktemp -d)
trap 'git worktree remove --force "$old/tree" 2>/dev/null || true; rm -rf "$old"' EXIT
git worktree add -q --detach "$old/tree" "$tag"

# stable prints the import paths of the stable packages.
stable() {
	local path dir
	go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r path dir; do
		if grep -qs 'This package is stable' "$dir/doc.go"; then echo "$path"; fi
	done
}

failed=0
for package in $(stable); do
	name=${package//\//_}
	(cd "$old/tree" && go run "$tool" -w "$old/$name" "$package") || continue # a new package
	go run "$tool" "$old/$name" "$package" >"$old/report"
	[ -s "$old/report" ] || continue
	printf '%s\n' "$package"
	cat "$old/report"
	grep -q '^Incompatible changes' "$old/report" && failed=1
done
case $tag in
v0.*) exit 0 ;;
esac
exit "$failed"
