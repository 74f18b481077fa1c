package convo

// FiguresOf returns the numbers of tokens that an error names.
func FiguresOf(err error) (limit, prompt, output, total int) {
	f := figuresOf(err)
	return f.limit, f.prompt, f.output, f.total
}
