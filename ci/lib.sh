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

# postgres looks for the programs with which the tests of sqlstore start a PostgreSQL server of
# their own. Root on a Debian installs them if need be. With them it sets CI_POSTGRES, so that
# the tests fail if they do not find them. Without, it adds the tests to the list of skips.
postgres() {
	if ! have_postgres && [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql; } </dev/null >/dev/null 2>&1 || true
	fi
	if have_postgres; then
		export CI_POSTGRES=1
		return
	fi
	[ -z "${CI_STRICT:-}" ] || fail 'CI_STRICT is set, and there is no PostgreSQL for the tests of sqlstore'
	skip 'sqlstore: TestPostgreSQL finds no PostgreSQL: initdb, pg_ctl, and for root runuser and a user named postgres'
}

have_postgres() {
	local bin
	bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1) # Debian has them there, not in the PATH
	[ ! -d "$bin" ] || PATH=$PATH:$bin
	command -v initdb >/dev/null && command -v pg_ctl >/dev/null || return 1
	[ "$(id -u)" != 0 ] || { id postgres && command -v runuser; } >/dev/null 2>&1
}
