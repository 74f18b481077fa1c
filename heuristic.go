package convo

// Heuristic is the default [Tokenizer].
type Heuristic struct{}

// CountTokens estimates.
func (Heuristic) CountTokens(text string) int { return (len(text) + 3) / 4 }
