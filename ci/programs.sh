#!/usr/bin/env bash
# Agents that others have written, with a task that does not fit into their window, in front of the
# provider of convotest/provider: alone, behind convo proxy, and behind convo proxy -compact.
#
#   ci/programs.sh            all of them, and a table
#   ci/programs.sh NAME...    some of them, such as codex
#
# The programs are installed into PROGRAMS_DIR, ~/.cache/convo-programs unless it is set, from the
# npm registry, and crush from its source, if it can be had. They see a HOME of their own and no
# provider but the one of the test. About five minutes once they are there.
. "$(dirname "$0")/lib.sh"

dir=${PROGRAMS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/convo-programs}

# The programs with their packages of npm.
npm_programs='
codex @openai/codex@0.171.0
gemini @google/gemini-cli@0.61.0
opencode opencode-ai@1.18.33
pi @mariozechner/pi-coding-agent@0.73.1
qwen @qwen-code/qwen-code@0.24.4
'
crush=37f36e938

# install NAME PACKAGE VERSION installs a package of npm.
install() {
	local to=$dir/$1@$3
	[ ! -e "$to/done" ] || return 0
	mkdir -p "$to"
	npm install --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error "$2@$3" >"$CI_WORK/npm" 2>&1 || {
		missing "programs: $1: $(tail -n 1 "$CI_WORK/npm")"
		return 1
	}
	touch "$to/done"
}

# install_crush builds crush.
install_crush() {
	local to=$dir/crush@$crush
	[ ! -e "$to/crush" ] || return 0
	GOBIN=$to go install "github.com/charmbracelet/crush@$crush" >"$CI_WORK/crush" 2>&1 || {
		missing "programs: crush: $(tail -n 1 "$CI_WORK/crush")"
		return 1
	}
}

command -v npm >/dev/null || { missing 'programs: there is no npm'; exit 0; }
list=()
while read -r name package; do
	[ -n "$name" ] || continue
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	! install "$name" "${package%@*}" "${package##*@}" || list+=("$name@${package##*@}")
done <<<"$npm_programs"
if [ $# = 0 ] || [[ " $* " == *' crush '* ]]; then
	! install_crush || list+=("crush@$crush")
fi
[ ${#list[@]} -gt 0 ] || fail 'none of these programs can be had'
go build -o "$CI_WORK/convo" ./cmd/convo
cd bench
go run ./programs -convo "$CI_WORK/convo" -dir "$dir" "${list[@]}"
