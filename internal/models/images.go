package models

import "strings"

// Images are what a provider takes of images in one request. 0 means that no limit is
// known.
type Images struct {
	Count int // images
	Side  int // pixels on a side of an image
	Few   int // images up to which Side applies; 0: any number
	Many  int // pixels on a side in a request with more than Few images
}

// ImagesOf returns what the provider of a model takes of images: Anthropic, also where
// another provider offers its models, or DeepSeek.
func ImagesOf(model string) Images {
	name := strings.ToLower(model[:min(len(model), 200)]) // longer than any real name
	switch {
	case strings.Contains(name, "claude"):
		l := Images{Count: 600, Side: 8000, Few: 20, Many: 2000}
		if _, major, minor := Claude(name); major > 0 && (major < 4 || major == 4 && minor < 6) { // their window has 200,000 tokens
			l.Count = 100
		}
		return l
	case strings.Contains(name, "deepseek"):
		return Images{Count: 600, Side: 8192, Few: 14, Many: 4096}
	}
	return Images{}
}
