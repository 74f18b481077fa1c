module github.com/seed-c1b73e60/convo/bench/glue/bedrock

go 1.26.5

require (
	github.com/aws/aws-sdk-go-v2 v1.48.0
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.27
	github.com/aws/aws-sdk-go-v2/service/bedrockruntime v1.63.13
	github.com/seed-c1b73e60/convo v0.1.0
	github.com/seed-c1b73e60/convo/bench v0.1.0
	github.com/seed-c1b73e60/convo/clients/convobedrock v0.1.0
	github.com/stretchr/testify v1.11.1
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.12 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.12 // indirect
	github.com/aws/smithy-go v1.28.9 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/seed-c1b73e60/convo => ../../..
	github.com/seed-c1b73e60/convo/bench => ../..
	github.com/seed-c1b73e60/convo/clients/convobedrock => ../../../clients/convobedrock
)
