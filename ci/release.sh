#!/usr/bin/env bash
# Whether VERSION of this module and of the nested modules can be released from HEAD:
#
#   ci/release.sh [-rehearse] VERSION [DIR...]
#
# It prints a line for each condition, with what to change if it is not met, and changes nothing.
# A rehearsal does not fail where only the release itself will meet a condition.
# A module proxy made of files offers the modules of HEAD as VERSION. For each module in DIR, all
# of them if there is none, a program outside of the repository, without replace, imports the
# packages, runs, and runs the examples. The script fails if a condition is not met. Otherwise it
# prints the commands that tag the release.
. "$(dirname "$0")/lib.sh"

rehearse=
if [ "${1:-}" = -rehearse ]; then
	rehearse=1
	shift
fi
version=${1:?usage: ci/release.sh [-rehearse] VERSION [DIR...]}
shift
bad=0
ok() { echo "ok      $*"; }
not() {
	echo "not ok  $*"
	bad=1
}
# check WHAT COMMAND... prints whether a command succeeds, and what it says if it does not.
check() {
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$what"; else not "$what"; sed 's/^/        /' <<<"$out" | tail -n 15; fi
}
# check_release is check for what is changed at the release.
check_release() {
	local before=$bad
	check "$@"
	[ -z "$rehearse" ] || bad=$before
}

root=$(go list -m)
# What is released: the root and the nested modules but those that measure or generate.
released=(. $(nested | grep -vE '^(bench|internal)(/|$)'))
wanted=("${released[@]}")
[ $# = 0 ] || wanted=("$@")
for dir in "${wanted[@]}"; do
	printf '%s\n' "${released[@]}" | grep -qxF -- "$dir" || fail "$dir has no module that is released; these have: ${released[*]}"
done
path() { if [ "$1" = . ]; then echo "$root"; else echo "$root/$1"; fi; }
tag() { if [ "$1" = . ]; then echo "$version"; else echo "$1/$version"; fi; }

is_version() { [[ $version =~ ^v[01]\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; }
clean() { local said; said=$(git status --porcelain) && [ -z "$said" ]; }
untagged() { local said; said=$(git tag -l "$(tag "$1")") && [ -z "$said" ]; }
named() { [ "$(cd "$1" && go list -m)" = "$(path "$1")" ]; }
licensed() { cmp LICENSE "$1/LICENSE" && git ls-files --error-unmatch "$1/LICENSE"; }
# no_match WHAT PATTERN prints the lines of the pages that a pattern matches, and what to do.
no_match() {
	local lines
	lines=$(git grep -nE "$2" -- '*.md' || true)
	[ -z "$lines" ] || { echo "$1:"; cut -c 1-100 <<<"$lines"; return 1; }
}
changelog() {
	grep -qE "^## \[?${version//./\\.}([], ]|$)" CHANGELOG.md || { echo "rename the section Unreleased to: $version, $(date -u +%F)"; return 1; }
}
# What the go.mod of a module says of our own modules, with other versions.
requires_release() {
	local others
	others=$(sed -nE "s#^(require)?[[:space:]]*($root[^ ]*) (v[^ ]+).*#\2 \3#p" "$1/go.mod" | grep -v " $version$" || true)
	[ -z "$others" ] || { sed "s#^\([^ ]*\) .*#cd $1 \&\& go mod edit -require=\1@$version#" <<<"$others"; return 1; }
}
# The commits without a version that a module needs of others.
requires_versions() {
	local pseudo
	pseudo=$(grep -vE '// indirect$' "$1/go.mod" | grep -E ' v[0-9.]+-([0-9A-Za-z.]+\.)?[0-9]{14}-[0-9a-f]{12}' || true)
	[ -z "$pseudo" ] || { echo "$pseudo"; return 1; }
}
# A module needs no newer Go than the root and the modules that it requires.
go_line() {
	local has needs
	needs=$(
		sed -n 's/^go //p' go.mod
		cd "$1"
		sed -nE 's/^(require )?[[:space:]]*([^ ]+) v[^ ]+.*/\2/p' go.mod | grep -v "^$root" | xargs go list -m -f '{{.GoVersion}}'
	)
	needs=$(grep '^[0-9]' <<<"$needs" | sort -V | tail -n 1)
	has=$(sed -n 's/^go //p' "$1/go.mod")
	[ "$has" = "$needs" ] || { echo "it has go $has: cd $1 && go mod edit -go=$needs"; return 1; }
}
tidy() { (cd "$1" && go mod tidy -diff); }
pages_name_modules() {
	local module
	for module in $(git grep -hoE "go get $root[^ @]*" -- '*.md' '*.go' | sed 's/go get //' | sort -u); do
		printf '%s\n' "${released[@]}" | while read -r dir; do path "$dir"; done | grep -qxF "$module" || { echo "$module"; return 1; }
	done
}

check "$version is a version" is_version
check 'nothing is uncommitted' clean
check_release "CHANGELOG.md has a section for $version" changelog
check 'go get in the pages names modules that are released' pages_name_modules
check_release 'no page says that there is no release' no_match 'remove these sentences' 'no release yet|[Nn]othing has been released'
check_release 'no page says to replace a module' no_match 'remove these commands and what introduces them' 'go mod edit -replace'
for dir in "${released[@]}"; do
	check_release "$(tag "$dir") is not tagged" untagged "$dir"
	check "$dir: its module is $(path "$dir")" named "$dir"
	check "$dir: it has the licence" licensed "$dir"
	check "$dir: it needs $version of our other modules" requires_release "$dir"
	check "$dir: it needs versions of others, not commits" requires_versions "$dir"
	check "$dir: it needs no newer Go than it must" go_line "$dir"
	check "$dir: its go.mod and go.sum are tidy" tidy "$dir"
done

# The proxy. A nested module is no part of the zip of a module around it.
work=$CI_WORK/release
for dir in "${released[@]}"; do
	at=$work/proxy/$(path "$dir")/@v
	mkdir -p "$at"
	git show "HEAD:$(git ls-files "$dir/go.mod")" >"$at/$version.mod"
	echo "{\"Version\":\"$version\"}" >"$at/$version.info"
	echo "$version" >"$at/list"
	excluded=()
	if [ "$dir" = . ]; then
		for inner in $(nested); do excluded+=(":(exclude)$inner"); done
		git archive --format=zip --prefix="$(path "$dir")@$version/" -o "$at/$version.zip" HEAD -- . "${excluded[@]}"
	else
		git archive --format=zip --prefix="$(path "$dir")@$version/" -o "$at/$version.zip" "HEAD:$dir"
	fi
done
# small DIR LIMIT compares the size of a zip with a limit in bytes, and names the largest files.
small() {
	[ "$(wc -c <"$work/proxy/$(path "$1")/@v/$version.zip")" -le "$2" ] || { git ls-tree -r -l HEAD "./$1/" | sort -k4nr | head -n 5 | cut -c 54-; return 1; }
}
for dir in "${released[@]}"; do
	limit=100000
	[ "$dir" != . ] || limit=5000000
	check "$dir: its zip of $(wc -c <"$work/proxy/$(path "$dir")/@v/$version.zip") bytes has at most $limit" small "$dir" $limit
done

# examples FOLDER prints the files with the examples of a module, and the tests that these may
# share functions with, if no test needs what only this repository may import.
examples() {
	if grep -hE '^package |convo/internal/' "$1"/*_test.go | grep -qv '^package .*_test$'; then
		find "$1" -maxdepth 1 -name 'example*_test.go'
	else
		find "$1" -maxdepth 1 -name '*_test.go'
	fi
}

# use DIR runs a program that imports the packages of a module, and the examples of the module.
# Each command is joined with &&, because bash ignores set -e in what a condition runs.
use() {
	local program=$work/program/$1 from=$work/cache/$(path "$1")@$version packages
	rm -rf "$program"
	mkdir -p "$program/examples"
	(
		cd "$program" &&
			go mod init example.com/program &&
			go get "$(path "$1")@$version" &&
			cmp "$OLDPWD/LICENSE" "$from/LICENSE" &&
			packages=$(go list -f '{{if and .GoFiles (ne .Name "main")}}import _ "{{.ImportPath}}"{{end}}' "$(path "$1")/..." | { grep -v /internal || true; }) &&
			{ [ -n "$packages" ] || [ -n "$(go list "$(path "$1")/...")" ]; } &&
			printf 'package main\n%s\nfunc main() {}\n' "$packages" >main.go &&
			for file in $(examples "$from"); do cp "$file" examples; done &&
			go mod tidy &&
			go run . &&
			if [ -n "$(ls examples)" ]; then go test -vet=off -run '^Example' ./examples; fi
	)
}
install_command() {
	(cd "$work" && GOBIN=$work go install "$root/cmd/convo@$version" && ./convo version | tee /dev/stderr | grep -q "^convo $version,")
}
# A cache of its own, so that what is not released gets into no other. What the usual cache has
# is not downloaded again. With -trimpath, what was built once is not built again.
export GOWORK=off GONOSUMDB=$root,$root/*
export GOPROXY=file://$work/proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOMODCACHE=$work/cache GOFLAGS='-mod=mod -modcacherw -trimpath'
for dir in "${wanted[@]}"; do
	check "$(path "$dir")@$version can be used" use "$dir"
	[ "$dir" != . ] || GOFLAGS='-modcacherw -trimpath' check "go install $root/cmd/convo@$version" install_command
done
[ $bad = 0 ] || fail "$version cannot be released"
echo
for dir in "${released[@]}"; do echo "git tag $(tag "$dir")"; done
echo 'git push --tags'
