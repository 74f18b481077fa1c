#!/usr/bin/env bash
# The page of package inspect in a headless Chromium. Where there is none, root on a
# Debian installs it; elsewhere the check is skipped.
. "$(dirname "$0")/lib.sh"

step 'the page of inspect in Chromium'
find_chromium() { command -v chromium chromium-browser google-chrome | head -n 1; }
chromium=$(find_chromium || true)
if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y chromium; } </dev/null >/dev/null 2>&1 || true
	chromium=$(find_chromium || true)
fi
if [ -z "$chromium" ]; then
	[ -z "${CI_STRICT:-}" ] || fail 'CI_STRICT is set, and there is no chromium for the page of inspect'
	skip 'inspect: there is no chromium to show the page'
	exit 0
fi
go test -count=1 -timeout 20m -run '^TestChromium$' ./inspect -convo.chromium="$chromium" ${PAGE_SHOTS:+-convo.shots="$PAGE_SHOTS"}
