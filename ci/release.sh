#!/usr/bin/env bash
# Whether VERSION of this module and of the nested modules can be released from HEAD:
#
#   ci/release.sh VERSION [DIR...]
#
# It prints a line for each condition and changes nothing. A module proxy made of files offers
# the modules of HEAD as VERSION, and a program outside of the repository, without replace,
# uses each module below DIR, all of them if there is none. It fails if one condition is not met.
. "$(dirname "$0")/lib.sh"

version=${1:?usage: ci/release.sh VERSION [DIR...]}
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
	if out=$("$@" 2>&1); then ok "$what"; else not "$what"; sed 's/^/        /' <<<"$out" | tail -n 5; fi
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
clean() { [ -z "$(git status --porcelain)" ]; }
untagged() { [ -z "$(git tag -l "$(tag "$1")")" ]; }
named() { [ "$(cd "$1" && go list -m)" = "$(path "$1")" ]; }
licensed() { cmp LICENSE "$1/LICENSE" && git ls-files --error-unmatch "$1/LICENSE"; }
# The versions of our own modules that a module needs, and the commits without a version that
# it needs of others.
requires_release() {
	local other
	other=$(cd "$1" && go mod edit -json | grep -A1 "\"Path\": \"$root" | grep '"Version"' | grep -vF "\"$version\"" || true)
	[ -z "$other" ] || { echo "$other"; return 1; }
}
requires_versions() {
	local pseudo
	pseudo=$(grep -vE '// indirect$' "$1/go.mod" | grep -E ' v[0-9.]+-([0-9A-Za-z.]+\.)?[0-9]{14}-[0-9a-f]{12}' || true)
	[ -z "$pseudo" ] || { echo "$pseudo"; return 1; }
}
pages_name_modules() {
	local module
	for module in $(git grep -hoE "go get $root[^ @]*" -- '*.md' '*.go' | sed 's/go get //' | sort -u); do
		printf '%s\n' "${released[@]}" | while read -r dir; do path "$dir"; done | grep -qxF "$module" || { echo "$module"; return 1; }
	done
}
no_page_denies() { ! git grep -nE 'There is no release yet' -- '*.md'; }

check "$version is a version" is_version
check 'nothing is uncommitted' clean
check "CHANGELOG.md has a section for $version" grep -qE "^## \[?${version//./\\.}\b" CHANGELOG.md
check 'go get in the pages names modules that are released' pages_name_modules
check 'no page says that there is no release' no_page_denies
for dir in "${released[@]}"; do
	check "$(tag "$dir") is not tagged" untagged "$dir"
	check "$dir: its module is $(path "$dir")" named "$dir"
	check "$dir: it has the licence" licensed "$dir"
	check "$dir: it needs $version of our other modules" requires_release "$dir"
	check "$dir: it needs versions of others, not commits" requires_versions "$dir"
done

# The proxy. A nested module is no part of the zip of a module around it.
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
for dir in "${released[@]}"; do
	at=$work/proxy/$(path "$dir")/@v
	mkdir -p "$at"
	git show "HEAD:$dir/go.mod" >"$at/$version.mod" 2>/dev/null || git show HEAD:go.mod >"$at/$version.mod"
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

# use DIR builds a program that imports the packages of a module. Each command is joined with
# &&, because bash ignores set -e in what a condition runs.
use() {
	local program=$work/program/$1 packages
	rm -rf "$program"
	mkdir -p "$program"
	(
		cd "$program" &&
			go mod init example.com/program &&
			go get "$(path "$1")@$version" &&
			packages=$(go list -f '{{if and .GoFiles (ne .Name "main")}}import _ "{{.ImportPath}}"{{end}}' "$(path "$1")/..." | { grep -v /internal || true; }) &&
			{ [ -n "$packages" ] || [ -n "$(go list "$(path "$1")/...")" ]; } &&
			printf 'package main\n%s\nfunc main() {}\n' "$packages" >main.go &&
			go mod tidy &&
			go build ./...
	)
}
# A cache of its own, so that what is not released gets into no other. What the usual cache has
# is not downloaded again.
proxy=file://$work/proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
for dir in "${wanted[@]}"; do
	GOWORK=off GOPROXY=$proxy GONOSUMDB=$root,$root/* GOMODCACHE=$work/cache GOFLAGS='-mod=mod -modcacherw' check "$(path "$dir")@$version can be used" use "$dir"
done
[ $bad = 0 ] || fail "$version cannot be released"
