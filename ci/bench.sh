#!/usr/bin/env bash
# Every benchmark once, to see that it runs.
. "$(dirname "$0")/lib.sh"

step 'benchmarks run'
go test -run '^$' -bench . -benchtime 1x ./... >/dev/null
