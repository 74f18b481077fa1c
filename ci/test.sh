#!/usr/bin/env bash
# Every test but the long fuzzing: the root module under several settings, the
# nested modules whose dependencies can be had, and the examples.
. "$(dirname "$0")/lib.sh"

step 'nested modules'
for dir in $(nested); do
	echo "$dir"
	can_have "$dir" || continue
	(cd "$dir" && go mod tidy -diff && go vet ./... && go test ./...)
done

step 'judges of the requests of package wire'
if can_have bench; then
	said=$(cd bench && go run ./judge/run -n 2000)
	echo "$said"
	while read -r line; do
		[ -z "${CI_STRICT:-}" ] || fail "CI_STRICT is set, and a judge cannot be had: $line"
		skip "bench/judge: $line"
	done < <(sed -n 's/^Not available here: //p' <<<"$said")
fi

step 'beside tiktoken-go'
if can_have .; then
	go test -tags tiktoken ./internal/tiktokengo
fi

step examples
for main in examples/*/main.go; do
	go run "./$(dirname "$main")" </dev/null >/dev/null
done
examples/resume/kill.sh 30

step 'the other JSON engine'
GOEXPERIMENT=jsonv2 go test -short ./...

step 'race, in random order, on four processors'
# What several goroutines use at once is the same in a short run, but for this one.
go test -race -timeout 30m -shuffle=on -cpu 4 -short ./...
go test -race -timeout 30m -run TestReload_Races .

step '32 bits, in random order, on one processor'
# Some kernels run no 32-bit programs; what vet sees of 32 bits is in ci/lint.sh.
if GOARCH=386 CGO_ENABLED=0 go run ./internal/fileproxy -h 2>&1 | grep -q 'exec format error'; then
	[ -z "${CI_STRICT:-}" ] || fail 'CI_STRICT is set, and this machine runs no 32-bit programs'
	skip 'tests on 32 bits: this machine runs no 32-bit programs'
else
	GOARCH=386 CGO_ENABLED=0 go test -short -shuffle=on -cpu 1 ./...
fi

step 'random operations against the model'
# Two runs side by side, with different seeds.
half=$((${MODEL_OPS:-200000} / 2))
go test -timeout 30m -run 'TestHistory_Model$' -convo.ops=$half -convo.seed=1000000 . &
go test -timeout 30m -run 'TestHistory_Model$' -convo.ops=$half .
wait $!
