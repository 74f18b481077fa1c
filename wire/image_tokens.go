package wire

import "math"

// An imageRule returns the tokens of an image. Width and height are in pixels,
// from 1 to 2^31-1.
type imageRule func(width, height int64) int64

// tiles is OpenAI's rule for tiles of 512 pixels. The image is scaled down to
// fit into a square of 2,048, then until its short side is at most 768.
func tiles(base, tile int64) imageRule {
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = w*768/short, h*768/short
		}
		return base + tile*ceilDiv(w, 512)*ceilDiv(h, 512)
	}
}

// patches is OpenAI's rule for patches of 32 pixels. The image is scaled down
// until no side is longer than edge and there are at most budget patches. Each
// patch takes the given hundredths of a token.
func patches(edge, budget, hundredths int64) imageRule {
	count := func(w, h int64) int64 { return ceilDiv(w, 32) * ceilDiv(h, 32) }
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, edge)
		if count(w, h) > budget {
			// Scale down to the budget, then until one side is a whole number
			// of patches.
			r := math.Sqrt(32 * 32 * float64(budget) / float64(w*h))
			across, down := float64(w)*r/32, float64(h)*r/32
			r *= min(max(math.Floor(across), 1)/across, max(math.Floor(down), 1)/down)
			w, h = max(int64(float64(w)*r), 1), max(int64(float64(h)*r), 1)
		}
		return ceilDiv(min(count(w, h), budget)*hundredths, 100)
	}
}

// claudePatches is Anthropic's rule for patches of 28 pixels. The image is
// scaled down to the largest size of the same shape with at most budget
// patches and no side longer than edge.
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

// geminiTiles is Google's rule up to Gemini 2.5: an image larger than 384
// pixels is cut into tiles with sides of two thirds of its short side, at 258
// tokens each.
func geminiTiles(w, h int64) int64 {
	if w <= 384 && h <= 384 {
		return 258
	}
	w, h = fitEdge(w, h, 3072)
	unit := max(min(w, h)*2/3, 256)
	return 258 * ceilDiv(w, unit) * ceilDiv(h, unit)
}

// mistralPatches is the rule of mistral-common: one token for each patch and one
// at the end of each row. The image is first scaled down until no side is longer
// than edge.
func mistralPatches(edge, patch int64) imageRule {
	return func(w, h int64) int64 {
		w, h = fitEdge(w, h, edge)
		return (ceilDiv(w, patch) + 1) * ceilDiv(h, patch)
	}
}

// qwenPatches is the rule of Qwen-VL: both sides are rounded to whole patches,
// there are at most 16,384 patches, and two tokens mark the beginning and the
// end.
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

// flat is the rule of providers for which all images have the same size.
func flat(tokens int64) imageRule {
	return func(_, _ int64) int64 { return tokens }
}

// fitEdge scales an image down until no side is longer than edge.
func fitEdge(w, h, edge int64) (int64, int64) {
	long := max(w, h, edge)
	return max(w*edge/long, 1), max(h*edge/long, 1)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
