#!/usr/bin/env bash
# Whether a commit sends the same requests as another one, byte for byte:
#
#   ci/same.sh BASE           HEAD beside BASE
#   ci/same.sh BASE COMMIT    another commit beside BASE
#
# bench/compare/same is built against both commits. It replays the conversations in the folder
# that CONVO_TRANSCRIPTS names, if it is set, and 10,000 random ones. The script fails if one of
# them differs, and names the first few.
. "$(dirname "$0")/lib.sh"

[ $# = 1 ] || [ $# = 2 ] || fail 'want ci/same.sh BASE [COMMIT]'
base=$(git rev-parse --verify "$1^{commit}")
head=$(git rev-parse --verify "${2:-HEAD}^{commit}")

# run SIDE COMMIT prints the lines of a commit into $CI_WORK/SIDE.txt.
run() {
	local tree=$CI_WORK/$1
	mkdir -p "$tree"
	git archive "$2" | tar -x -C "$tree"
	rm -rf "$tree/bench/compare"
	cp -r bench/compare "$tree/bench/compare"
	(cd "$tree/bench" && go build -trimpath -mod=mod -o "$CI_WORK/same-$1" ./compare/same)
	"$CI_WORK/same-$1" ${CONVO_TRANSCRIPTS:+"$CONVO_TRANSCRIPTS"} >"$CI_WORK/$1.txt"
}

run base "$base"
run head "$head"
lines=$(wc -l <"$CI_WORK/head.txt")
if ! diff "$CI_WORK/base.txt" "$CI_WORK/head.txt" >"$CI_WORK/diff"; then
	grep '^>' "$CI_WORK/diff" | head -5
	fail "$(grep -c '^>' "$CI_WORK/diff") of $lines conversations differ"
fi
[ -n "${CONVO_TRANSCRIPTS:-}" ] || skip 'recorded conversations: CONVO_TRANSCRIPTS is not set'
echo "$lines conversations, each the same"
