#!/usr/bin/env bash
# Formatting, and what go fix would write differently.
. "$(dirname "$0")/lib.sh"

step gofmt
bad=$(gofmt -l .)
[ -z "$bad" ] || fail "not formatted: $bad"

step go fix
go fix -diff ./...
