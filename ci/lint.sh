#!/usr/bin/env bash
# Modules, vet and staticcheck.
. "$(dirname "$0")/lib.sh"

step modules
go mod verify
if can_have .; then
	go mod tidy -diff
	go vet -tags tiktoken ./...
fi
modules=$(go list -m all | cut -d ' ' -f 1 | sort)
diff .ci/modules.txt - <<<"$modules" || fail "the root module may depend on the modules of .ci/modules.txt and on nothing else"

step vet
go vet ./...
GOOS=windows go vet ./...
GOARCH=386 go vet ./...

step staticcheck
if can_have . "honnef.co/go/tools@$STATICCHECK"; then
	go run "honnef.co/go/tools/cmd/staticcheck@$STATICCHECK" ./...
fi
