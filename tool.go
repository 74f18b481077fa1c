package convo

// A Tool is the definition of a tool that the model may call. The formats of package
// wire write it as each provider wants it.
type Tool struct {
	Name        string // in letters, digits, _ and -, at most 64, every provider takes it
	Description string // for the model: what the tool does, and when to call it

	// Schema is the JSON Schema of the arguments, whose type is object. Empty: the
	// tool takes no arguments.
	Schema string
}

// String returns the name of the tool and the beginning of its description.
func (t Tool) String() string {
	return abbreviate(t.Name) + "(" + abbreviate(t.Description) + ")"
}

// GoString returns the same as String.
func (t Tool) GoString() string { return t.String() }
