#!/usr/bin/env bash
# Kills examples/resume with -9 at random moments, as many times as the argument says,
# 100 unless told otherwise, and starts it again each time. Then it looks whether every
# turn that was said to be saved is there once, in order, with its answer. It fails if
# one is not. A turn that was being saved when the kill came may be there or not.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kills=${1:-100}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

go build -o "$tmp/resume" ./examples/resume
for ((run = 1; run <= kills; run++)); do
	: >"$tmp/out" # the kill may come before the next line has emptied it
	"$tmp/resume" -dir "$tmp/chats" < <(seq -f "run $run, question %.0f" 1000000 2>/dev/null) >"$tmp/out" 2>>"$tmp/log" &
	pid=$!
	if ((run % 2 == 1)); then # the others may be killed before they have opened the log
		until grep -q '^saved: ' "$tmp/out" || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
	fi
	sleep "$(printf '0.%03d' $((RANDOM % 80)))"
	if ! kill -9 $pid 2>/dev/null; then
		echo "run $run ended by itself" >>"$tmp/log"
		cat "$tmp/log" >&2
		exit 1
	fi
	wait $pid 2>/dev/null || true
	sed -n 's/^saved: //p' "$tmp/out" >>"$tmp/acknowledged"
done
"$tmp/resume" -dir "$tmp/chats" -all >"$tmp/all"

awk -v kills="$kills" '
	function fail(what) { print what; failed = 1; exit 1 }
	FNR == NR { acknowledged[++n] = $0; next }
	FNR % 2 == 1 {
		if (sub(/^user: /, "") == 0) fail("no question: " $0)
		turn = $0
		if (turn in seen) fail("twice: " turn)
		seen[turn]
		if (turn == acknowledged[found + 1]) { found++; next }
		split(turn, words, ",") # "run 5": the kill came before it could say that it had saved
		if (words[1] in killed) fail("lost, or not in order: " acknowledged[found + 1] "; in its place is " turn)
		killed[words[1]]; extra++
		next
	}
	$0 != "assistant: You said: " turn { fail("the answer to " turn " is " $0) }
	END {
		if (failed) exit 1
		if (FNR % 2 == 1) fail("no answer: " turn)
		if (found < n) fail("lost: " acknowledged[found + 1])
		if (n < kills / 2) fail("only " n " turns were saved in " kills " runs")
		printf "%d kills: %d turns acknowledged, each there once and in order; %d more saved when the kill came\n", kills, n, extra
	}
' "$tmp/acknowledged" "$tmp/all"
