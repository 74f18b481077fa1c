#!/usr/bin/env bash
# How much processor time and memory a commit needs beside another one, in at most four
# minutes:
#
#   ci/compare.sh BASE           HEAD beside BASE
#   ci/compare.sh BASE COMMIT    another commit beside BASE
#
# Each folder of bench/compare/rows is a small program. It is built against both commits, and the
# two run in turns, many short rounds each, of which the fastest counts. A row that a commit
# cannot build is named, and the others run. The table decides nothing: the script fails only
# if it cannot measure. On equal commits the ratios are within a tenth of 1.
. "$(dirname "$0")/lib.sh"

[ $# = 1 ] || [ $# = 2 ] || fail 'want ci/compare.sh BASE [COMMIT]'
base=$(git rev-parse --verify "$1^{commit}")
head=$(git rev-parse --verify "${2:-HEAD}^{commit}")
rows=$(cd bench/compare/rows && printf '%s\n' *)

# build SIDE COMMIT builds the programs into $CI_WORK/SIDE/bin. The rows, and the packages with
# which they measure, are those of this folder; all else is the commit's.
build() {
	local tree=$CI_WORK/$1 row
	mkdir -p "$tree/bin"
	git archive "$2" | tar -x -C "$tree"
	rm -rf "$tree/bench"
	mkdir "$tree/bench"
	cp -r bench/go.mod bench/go.sum bench/peer bench/compare "$tree/bench"
	cd "$tree/bench"
	go build -trimpath -mod=mod -o ../bin/ ./compare/rows/... 2>/dev/null || true
	for row in $rows; do
		[ -e "../bin/$row" ] || go build -trimpath -mod=mod -tags rootstore -o ../bin/ "./compare/rows/$row" 2>"$CI_WORK/errors" || {
			echo "the row $row is left out, since $1 cannot build it: $(grep -m1 -v '^#' "$CI_WORK/errors")"
		}
	done
}

(build base "$base")
(build head "$head")
echo "base is $(git log -1 --format='%h %s' "$base")"
echo "head is $(git log -1 --format='%h %s' "$head")"
echo
cd bench
go run ./compare "$CI_WORK/base/bin" "$CI_WORK/head/bin" $rows
