# Functions that .ci/run and the scripts of this folder share; sourced, not run.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# What tests read from the environment. With a key, some would talk to a real service.
unset CONVO_LONG CONVO_MODEL GOLDEN ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY AWS_ACCESS_KEY_ID

STATICCHECK=v0.8.2

# The nested modules that take too long for .ci/run, and folders of some. ci/long.sh tests them.
HEAVY=(adapters/fantasy adapters/trpc bench/hosted bench/judge bench/peers sqlstore)

# What the scripts write, removed at their end: the list of skips, and the seconds
# of the stages.
CI_WORK=$(mktemp -d)
trap 'chmod -R u+w "$CI_WORK"; rm -rf "$CI_WORK"' EXIT
touch "$CI_WORK/skipped" "$CI_WORK/stages"

step() { printf '\n== %s\n' "$*"; }

fail() {
	echo "$*" >&2
	exit 1
}

skip() {
	echo "skipped here: $*"
	echo "$*" >>"$CI_WORK/skipped"
}

# missing names what cannot be had here. With CI_STRICT set that is an error.
missing() {
	[ -z "${CI_STRICT:-}" ] || fail "CI_STRICT is set, and here is skipped: $*"
	skip "$*"
}

# debian_install installs a package if root runs this on Debian.
debian_install() {
	if [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$1"; } </dev/null >/dev/null 2>&1 || true
	fi
}

print_skipped() { sort -u "$CI_WORK/skipped" | sed 's/^/skipped here: /'; }

# stage NAME COMMAND... runs a command and records its seconds: on the clock, and of
# the processors.
stage() {
	local name=$1 TIMEFORMAT='%R %U %S'
	shift
	step "$name"
	{ time "$@" 2>&3; } 3>&2 2>"$CI_WORK/time"
	awk -v name="$name" '{ printf "%.0f\t%.0f\t%s\n", $1, $2 + $3, name }' "$CI_WORK/time" >>"$CI_WORK/stages"
}

# print_stages prints the recorded seconds.
print_stages() {
	step 'seconds on the clock, and of the processors'
	awk -F '\t' '{ printf "%6d %6d  %s\n", $1, $2, $3; c += $1; p += $2 } END { printf "%6d %6d  together\n", c, p }' "$CI_WORK/stages"
}

# CI_BUDGET is how many seconds of the processors all stages may take. Above it,
# stage_last says so, and above twice that it fails. A machine with a high load takes
# longer on the clock, which decides nothing.
CI_BUDGET=${CI_BUDGET:-1850}
[[ $CI_BUDGET =~ ^[0-9]+$ ]] || fail "CI_BUDGET is $CI_BUDGET, want a number of seconds"

# stage_last COMMAND... is the last stage. What the command prints ends the output.
stage_last() {
	local used
	stage "$*" keep_output "$@"
	used=$(awk -F '\t' '{ p += $2 } END { print p }' "$CI_WORK/stages")
	[ "$used" -gt "$CI_BUDGET" ] || return 0
	step "the stages took $used seconds of the processors, more than CI_BUDGET, which is $CI_BUDGET; the slowest:"
	sort -t "$(printf '\t')" -k2nr "$CI_WORK/stages" | head -n 5 | awk -F '\t' '{ printf "%6d  %s\n", $2, $3 }'
	[ "$used" -le $((2 * CI_BUDGET)) ] || fail "more than twice CI_BUDGET: make the checks cheaper, or move some to ci/long.sh"
	tail -n 5 "$CI_WORK/output"
}

keep_output() { "$@" | tee "$CI_WORK/output"; }

# nested lists the folders of the nested modules.
nested() {
	local list
	list=$(git ls-files '*/go.mod')
	[ -n "$list" ] || fail 'git lists no nested module'
	xargs -n 1 dirname <<<"$list"
}

is_heavy() {
	local dir
	for dir in "${HEAVY[@]}"; do
		[[ $1/ != $dir/* ]] || return 0
	done
	return 1
}

# test_nested DIR vets and tests a nested module, if its modules can be had.
test_nested() {
	can_have "$1" || return 0
	[ "$1" != sqlstore ] || postgres
	(cd "$1" && go vet ./... && go test ./...)
}

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
	have_postgres || debian_install postgresql
	if have_postgres; then
		export CI_POSTGRES=1
		return
	fi
	missing 'sqlstore: TestPostgreSQL finds no PostgreSQL: initdb, pg_ctl, and for root runuser and a user named postgres'
}

have_postgres() {
	local bin
	bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1) # Debian has them there, not in the PATH
	[ ! -d "$bin" ] || PATH=$PATH:$bin
	command -v initdb >/dev/null && command -v pg_ctl >/dev/null || return 1
	[ "$(id -u)" != 0 ] || { id postgres && command -v runuser; } >/dev/null 2>&1
}
