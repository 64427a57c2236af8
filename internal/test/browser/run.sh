#!/usr/bin/env bash
# Runs the tests of this module in headless Chromium:
#
#   bash internal/test/browser/run.sh
#
# It needs Go, node 20 or newer, npm, and a browser: the one named by PSI_BROWSER, or one of those
# listed below. If there is none, the script tries to install Chromium with apt-get. With --find,
# it only does that, and prints the path. Other arguments are passed to go test. Screenshots are saved in
# internal/test/browser/results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

# find_browser prints the path of the browser, or fails if there is none.
find_browser() {
	local name
	for name in "${PSI_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
		if [ -n "$name" ] && command -v "$name"; then
			return 0
		fi
	done
	return 1
}

install_browser() {
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
	echo "installing chromium" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null
}

if ! PSI_BROWSER=$(find_browser); then
	if ! install_browser || ! PSI_BROWSER=$(find_browser); then
		echo "not run: there is no browser, and none could be installed" >&2
		exit 1
	fi
fi
if [ "${1:-}" = --find ]; then
	echo "$PSI_BROWSER"
	exit 0
fi
export PSI_BROWSER
npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
go test -count=1 -timeout 5m . "$@"
