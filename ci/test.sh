#!/usr/bin/env bash
# Every test but the long fuzzing: the root module under several settings, the
# nested modules whose dependencies can be had, the examples, and a machine
# that can have nothing but testify.
. "$(dirname "$0")/lib.sh"

step 'nested modules'
for dir in $(nested); do
	echo "$dir"
	can_have "$dir" || continue
	(cd "$dir" && go mod tidy -diff && go vet ./... && go test ./...)
done

step 'beside tiktoken-go'
if can_have .; then
	go test -tags tiktoken ./internal/tiktokengo
fi

step 'a module proxy that offers testify alone'
proxied=$(mktemp -d)
trap 'chmod -R u+w "$proxied"; rm -rf "$proxied"' EXIT
go run ./internal/fileproxy "$proxied/proxy"
(
	export GOPROXY=file://$proxied/proxy GOSUMDB=off GOMODCACHE=$proxied/cache GOFLAGS=-modcacherw
	go build ./...
	go vet ./...
	go run ./examples/quickstart >/dev/null
	go test -short ./...
)

step examples
for dir in examples/*/; do
	go run "./$dir" >/dev/null
done

step 'the other JSON engine'
GOEXPERIMENT=jsonv2 go test -short ./...

step 'race, in random order'
# What several goroutines use is in the root. Elsewhere the short tests call it.
go test -race -timeout 30m -shuffle=on . ./convotest ./examples/...
go test -race -timeout 30m -shuffle=on -short ./wire ./internal/...

step 'one processor and four'
go test -short -shuffle=on -cpu 1,4 . ./convotest

step '32 bits'
GOARCH=386 CGO_ENABLED=0 go test -short ./...

step mutants
# Each takes a build. The commit chooses a quarter of them; with CI_STRICT set all run.
part=$((0x$(git rev-parse --short=4 HEAD | cut -c 1-4) % 4 + 1))
[ -z "${CI_STRICT:-}" ] || part=0
go test ./internal/modeltest -timeout 60m -run TestMutants -convo.mutants -convo.mutants.part="$part"

step 'random operations against the model'
go test -timeout 30m -run 'TestHistory_Model$' -convo.ops="${MODEL_OPS:-100000}" .
