package wire

import "math"

// An imageRule says what an image of so many pixels weighs. Sides are from 1
// to 2^31-1.
type imageRule func(width, height int64) int64

// tiles is OpenAI's rule of 512-pixel tiles: into a square of 2048, then down
// to a short side of 768.
func tiles(base, tile int64) imageRule {
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = w*768/short, h*768/short
		}
		return base + tile*ceilDiv(w, 512)*ceilDiv(h, 512)
	}
}

// patches is OpenAI's rule of 32-pixel patches: no side above edge, no more
// patches than budget, and so many hundredths of a token for each.
func patches(edge, budget, hundredths int64) imageRule {
	count := func(w, h int64) int64 { return ceilDiv(w, 32) * ceilDiv(h, 32) }
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, edge)
		if count(w, h) > budget {
			// Down to the budget, and on until one side is whole patches.
			r := math.Sqrt(32 * 32 * float64(budget) / float64(w*h))
			across, down := float64(w)*r/32, float64(h)*r/32
			r *= min(max(math.Floor(across), 1)/across, max(math.Floor(down), 1)/down)
			w, h = max(int64(float64(w)*r), 1), max(int64(float64(h)*r), 1)
		}
		return ceilDiv(min(count(w, h), budget)*hundredths, 100)
	}
}

// claudePatches is Anthropic's rule of 28-pixel patches: the largest size of
// the same shape that has no side above edge and no more patches than budget.
func claudePatches(edge, budget int64) imageRule {
	fits := func(w, h int64) bool {
		w, h = ceilDiv(w, 28), ceilDiv(h, 28)
		return w*28 <= edge && h*28 <= edge && w*h <= budget
	}
	return func(w, h int64) int64 {
		long, short := max(w, h), min(w, h)
		at := func(n int64) int64 {
			return max(int64(math.RoundToEven(float64(n)*float64(short)/float64(long))), 1)
		}
		if fits(long, short) {
			return ceilDiv(long, 28) * ceilDiv(short, 28)
		}
		low, high := int64(1), min(long, edge+1) // low fits, high does not
		for low+1 < high {
			if n := (low + high) / 2; fits(n, at(n)) {
				low = n
			} else {
				high = n
			}
		}
		return ceilDiv(low, 28) * ceilDiv(at(low), 28)
	}
}

// geminiTiles is Google's rule up to Gemini 2.5: tiles of two thirds of the
// short side, at 258 tokens each.
func geminiTiles(w, h int64) int64 {
	if w <= 384 && h <= 384 {
		return 258
	}
	w, h = fitEdge(w, h, 3072)
	unit := max(min(w, h)*2/3, 256)
	return 258 * ceilDiv(w, unit) * ceilDiv(h, unit)
}

// mistralPatches is the rule of mistral-common: rows of patches, each with a
// token at its end.
func mistralPatches(edge, patch int64) imageRule {
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, edge)
		return (ceilDiv(w, patch) + 1) * ceilDiv(h, patch)
	}
}

// qwenPatches is the rule of Qwen-VL: sides to the nearest whole patches, at
// most 16,384 of them, and a token at either end.
func qwenPatches(patch int64) imageRule {
	const most = 16384
	return func(w, h int64) int64 {
		across, down := max((w+patch/2)/patch, 1), max((h+patch/2)/patch, 1)
		if float64(across)*float64(down) > most {
			r := math.Sqrt(float64(w) * float64(h) / float64(most*patch*patch))
			across, down = int64(float64(w)/r)/patch, int64(float64(h)/r)/patch
		}
		return min(max(across, 1)*max(down, 1), most) + 2
	}
}

// flat is the rule where all images weigh the same.
func flat(tokens int64) imageRule {
	return func(_, _ int64) int64 { return tokens }
}

// fitEdge shrinks an image until no side is above edge.
func fitEdge(w, h, edge int64) (int64, int64) {
	if long := max(w, h); long > edge {
		return max(w*edge/long, 1), max(h*edge/long, 1)
	}
	return w, h
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
