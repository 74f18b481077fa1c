module github.com/seed-c1b73e60/convo/adapters/trpc

go 1.26.0

require (
	github.com/seed-c1b73e60/convo v0.0.0
	github.com/stretchr/testify v1.11.1
	trpc.group/trpc-go/trpc-agent-go v1.5.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.27.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	trpc.group/trpc-go/trpc-a2a-go v0.2.5 // indirect
)

replace github.com/seed-c1b73e60/convo => ../..
