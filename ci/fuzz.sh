#!/usr/bin/env bash
# Every fuzz target for FUZZTIME, 2 seconds unless it is set.
. "$(dirname "$0")/lib.sh"

FUZZTIME=${FUZZTIME:-2s}

step fuzz
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fuzz() { go test -run '^$' -fuzz "^$1\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1x "$2" >"$log" 2>&1; }
for dir in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do
	[ -f "$dir/go.mod" ] && [ "$dir" != . ] && continue
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' -- "$dir"/*_test.go | sed 's/func //'); do
		# At the end of its time go test may fail with its own deadline and no
		# failing input: then it runs once more.
		fuzz "$target" "./$dir" || { ! grep -q 'Failing input' "$log" && grep -q 'context deadline exceeded' "$log" && fuzz "$target" "./$dir"; } ||
			{ cat "$log"; exit 1; }
		echo "$target: $(tail -n 1 "$log")"
	done
done
