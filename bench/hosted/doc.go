// Package hosted tests package convoanthropic with the clients of Anthropic's SDK for Bedrock
// and Vertex. It is a module of its own because these bring the SDKs of Amazon and Google.
package hosted
