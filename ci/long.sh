#!/usr/bin/env bash
# The checks that take too long for .ci/run, to be run before a release:
#
#   ci/long.sh            all parts, and a table of the results
#   ci/long.sh PART...    some of them
#   ci/long.sh -list      the names of the parts, one on each line
#
# No part takes more than 40 minutes on two cores. Each ends with a line of its result
# and its seconds: on the clock, and, if it passed, of the processors. The script fails if a
# part does, after it has run the others.
. "$(dirname "$0")/lib.sh"

go_test() { go test -count=1 -timeout 40m "$@"; }

# Each function part_NAME is a part.

# The long forms of the tests of the root module.
part_root() { CONVO_LONG=1 go_test .; }
part_wire() { CONVO_LONG=1 go_test ./wire; }
part_packages() {
	local list
	list=$(go list ./...)
	CONVO_LONG=1 go_test $(grep -vxE "$(go list -m)(/wire)?" <<<"$list")
}

# All tests of the root module under other settings.
part_race() { go_test -race -shuffle on -cpu 4 ./...; }
part_jsonv2() { GOEXPERIMENT=jsonv2 go_test ./...; }
part_bits32() {
	# Some kernels run no 32-bit programs. Part platforms has what vet finds of 32 bits.
	local said
	said=$(GOARCH=386 CGO_ENABLED=0 go run ./internal/fileproxy -h 2>&1 || true)
	if [[ $said == *'exec format error'* ]]; then
		missing 'tests on 32 bits: this machine runs no 32-bit programs'
		return
	fi
	GOARCH=386 CGO_ENABLED=0 go_test -shuffle on -cpu 1 ./...
}

# The code as vet sees it for other systems and with tags, and what go fix would change.
part_platforms() {
	GOOS=windows go vet ./...
	GOOS=darwin go vet ./...
	GOARCH=386 go vet ./...
	if can_have .; then go vet -tags tiktoken ./...; fi
	go fix -diff ./...
}

# A million random operations against the model, in two runs at once.
part_model() {
	local first second bad=
	go_test -run 'TestHistory_Model$' -convo.ops=500000 -convo.seed=2000000 . & first=$!
	go_test -run 'TestHistory_Model$' -convo.ops=500000 -convo.seed=3000000 . & second=$!
	wait $first || bad=1
	wait $second || bad=1
	[ -z "$bad" ]
}

# A million requests of random conversations with signed reasoning, half of them in each format.
part_seals() { go_test ./wire -run 'TestSeals_Random$' -convo.seals=500000; }

# Killed programs and servers.
part_kills() {
	examples/resume/kill.sh 300
	CONVO_LONG=1 go_test -run 'Kill|Crash' ./filestore
	can_have sqlstore || return 0
	postgres
	(cd sqlstore && CONVO_LONG=1 go_test -run 'Kill|Crash|PostgreSQL' ./...)
}

# Every fuzz target for FUZZTIME, 10 seconds unless it is set.
part_fuzz() {
	local dirs dir target
	dirs=$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
	for dir in $dirs; do
		[ -f "$dir/go.mod" ] && [ "$dir" != . ] && continue
		for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' -- "$dir"/*_test.go | sed 's/func //'); do
			# At the end of its time go test may fail with its own deadline and no
			# failing input: then it runs once more.
			fuzz "$target" "./$dir" || { ! grep -q 'Failing input' "$CI_WORK/fuzz" && grep -q 'context deadline exceeded' "$CI_WORK/fuzz" && fuzz "$target" "./$dir"; } ||
				{ cat "$CI_WORK/fuzz"; exit 1; }
			echo "$target: $(tail -n 1 "$CI_WORK/fuzz")"
		done
	done
}
fuzz() { go test -run '^$' -fuzz "^$1\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1x "$2" >"$CI_WORK/fuzz" 2>&1; }

# Every benchmark of the root module once.
part_bench() { go test -run '^$' -bench . -benchtime 1x ./... >/dev/null; }

# The page of package inspect in Chromium. PAGE_SHOTS is a folder for screenshots.
part_page() {
	if ! find_chromium >/dev/null; then debian_install chromium; fi
	if ! find_chromium >/dev/null; then
		missing 'inspect: there is no chromium to show the page'
		return
	fi
	go_test -run '^TestChromium$' ./inspect -convo.chromium="$(find_chromium)" ${PAGE_SHOTS:+-convo.shots="$PAGE_SHOTS"}
}
find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# The SDKs and templates that judge the requests of package wire, and tiktoken-go, which
# counts what internal/bpe counts.
part_judges() {
	local line
	if can_have bench; then
		(cd bench && go run ./judge/run) | tee "$CI_WORK/said"
		while read -r line; do missing "bench/judge: $line"; done < <(sed -n 's/^Not available here: //p' "$CI_WORK/said")
	fi
	if can_have .; then go_test -tags tiktoken ./internal/tiktokengo; fi
}

# Programs that know nothing of convo, behind package transport.
part_programs() { ci/programs.sh; }

# The nested modules that .ci/run leaves out, and the long forms of the tests of all.
part_heavy() {
	local list dir
	list=$(nested)
	for dir in $list; do
		is_heavy "$dir" || continue
		step "$dir"
		test_nested "$dir"
	done
}
part_nested() {
	local list dir
	list=$(nested)
	for dir in $list; do
		step "$dir"
		can_have "$dir" || continue
		[ "$dir" != sqlstore ] || postgres
		(cd "$dir" && CONVO_LONG=1 go_test ./...)
	done
}

# Random mutants of four packages. At most 5 of 100 may survive.
part_mutants() {
	go run ./internal/mutate -seed 45 -n 80
	go run ./internal/mutate -seed 45 -n 80 -dir wire
	go run ./internal/mutate -seed 45 -n 20 -dir mirror
	go run ./internal/mutate -seed 45 -n 20 -dir filestore
}

# A rehearsal of the release that the nested modules require.
part_release() { ci/release.sh -rehearse "$(sed -n 's#^[[:space:]].*/convo \(v[0-9.]*\)$#\1#p' sqlstore/go.mod)"; }

all() { sed -n 's/^part_\([a-z0-9]*\)() .*/\1/p' ci/long.sh; }

if [ "${1:-}" = -list ]; then
	all
elif [ "${1:-}" = -part ]; then # this script calls itself: set -e has no effect in what is part of a condition
	stage "$2" "part_$2"
	cp "$CI_WORK/stages" "$3"
else
	[ $# -gt 0 ] || set -- $(all)
	for part in "$@"; do
		all | grep -xF -- "$part" >/dev/null || fail "there is no part $part; the parts are: $(all | tr '\n' ' ')"
	done
	bad=0
	for part in "$@"; do
		: >"$CI_WORK/part"
		result=passed
		SECONDS=0
		ci/long.sh -part "$part" "$CI_WORK/part" || { result=FAILED bad=1; }
		read -r wall cpu _ <"$CI_WORK/part" || { wall=$SECONDS cpu=-; }
		printf '%-10s %s %6s %6s\n' "$part" "$result" "$wall" "$cpu" | tee -a "$CI_WORK/results"
	done
	if [ $# -gt 1 ]; then
		step "the parts on $(git rev-parse --short HEAD), with seconds on the clock, and of the processors"
		cat "$CI_WORK/results"
	fi
	exit $bad
fi
