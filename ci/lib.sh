# Functions that the scripts of this folder share; sourced, not run.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STATICCHECK=v0.8.2

# The list of what was skipped. .ci/run makes it, so that it can print the
# skips of all scripts at its end.
CI_SKIPPED=${CI_SKIPPED:-$(mktemp)}
export CI_SKIPPED

step() { printf '\n== %s\n' "$*"; }

fail() {
	echo "$*" >&2
	exit 1
}

skip() {
	echo "skipped here: $*"
	echo "$*" >>"$CI_SKIPPED"
}

# nested lists the folders of the nested modules.
nested() { git ls-files '*/go.mod' | xargs -n 1 dirname; }

# The answers of a module proxy, and of one made of files, which say that it
# does not offer a module. Every other failure of a download is a fault.
REFUSED='reading [^ ]*/@v/[^ ]*\.(zip|mod|info): (403 Forbidden|404 Not Found|410 Gone|.*no such file or directory)'

# can_have DIR [MODULE...] downloads the modules named, or all that the module
# in DIR needs. It succeeds when all are there. When the proxy refuses some, it
# prints them with the proxy's answer, adds them to the list of skips, and
# fails. Anything else that goes wrong ends the script.
#
# The repositories behind the proxy are not asked: their answers have no codes.
can_have() {
	local dir=$1 out errors others proxy
	shift
	proxy=$(go env GOPROXY)
	[ "$proxy" = direct ] || proxy=${proxy%[,|]direct}
	out=$(cd "$dir" && GOPROXY=$proxy go mod download -json "$@" 2>&1) && return 0
	errors=$(grep -E '"Error":|^go: ' <<<"$out" || true)
	others=$(grep -E 'verifying ' <<<"$errors" || grep -vE "$REFUSED" <<<"$errors" || true)
	if [ -n "$others" ] || [ -z "$errors" ]; then
		fail "cannot download the modules of $dir:"$'\n'"${others:-$out}"
	fi
	if [ -n "${CI_STRICT:-}" ]; then
		fail "CI_STRICT is set, and the modules of $dir cannot all be had:"$'\n'"$errors"
	fi
	while read -r line; do
		line=${line#*\"Error\": \"}
		skip "$dir: ${line%\"*}"
	done <<<"$errors"
	return 1
}
