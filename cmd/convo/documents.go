package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

const (
	headSize    = 64 << 10  // what is read ahead to recognise an input
	maxDocument = 256 << 20 // a longer JSON document is refused
)

// An inputError says which input cannot be read, why, and what to do.
type inputError struct {
	name string // of the file
	line int    // where; 0: the whole input
	text string
	err  error // may be nil
}

func (e *inputError) Error() string {
	at := e.name
	if e.line > 0 {
		at += fmt.Sprintf(":%d", e.line)
	}
	return at + ": " + e.text
}

func (e *inputError) Unwrap() error { return e.err }

// An input is a file, or the standard input.
type input struct {
	name string
	r    *bufio.Reader
	head []byte // the beginning of the content, without white space; it is still to be read
	done func()
}

// inputs yields the inputs that the arguments name. Each is closed when the loop goes on. One
// that cannot be opened gives an error, and the next follows.
func inputs(env *cli.Env, names []string) iter.Seq2[*input, error] {
	return func(yield func(*input, error) bool) {
		if len(names) == 0 {
			names = []string{"-"}
		}
		for _, name := range names {
			in, err := open(env, name)
			ok := yield(in, err)
			if in != nil {
				in.done()
			}
			if !ok {
				return
			}
		}
	}
}

// open opens a file, or the standard input if the name is "-", and reads its beginning.
func open(env *cli.Env, name string) (*input, error) {
	in := &input{name: name, done: func() {}}
	var r io.Reader
	if name == "-" {
		if env.StdinTerminal {
			return nil, errNoInput
		}
		in.name = "standard input"
		r, in.done = env.Progress(in.name, env.Stdin, 0)
	} else {
		info, err := os.Stat(name)
		if err != nil {
			return nil, &inputError{name: name, text: cause(err), err: err}
		}
		if info.IsDir() {
			return nil, &inputError{name: name, text: folderText(name)}
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, &inputError{name: name, text: cause(err), err: err}
		}
		var clear func()
		r, clear = env.Progress(name, f, info.Size())
		in.done = func() {
			clear()
			_ = f.Close()
		}
	}
	in.r = newReader(r)
	if err := in.look(); err != nil {
		in.done()
		return nil, err
	}
	return in, nil
}

// inputNames returns the names of inputs for an error about all of them.
func inputNames(names []string) string {
	if len(names) == 0 {
		return "standard input"
	}
	return strings.Join(names, ", ")
}

// folderText says what to name in place of a folder.
func folderText(dir string) string {
	if logs, _ := filepath.Glob(filepath.Join(dir, "*.convo")); len(logs) > 0 {
		return "this is the directory of a filestore.Store; " + storeAdvice(dir)
	}
	text := "this is a folder: name the files in it"
	const deepest = 5
	for _, ext := range []string{".jsonl", ".json"} {
		files := dir
		for range deepest {
			files = filepath.Join(files, "*")
			if found, _ := filepath.Glob(files + ext); len(found) > 0 {
				return text + ", such as " + files + ext
			}
		}
	}
	return text
}

// storeAdvice says which subcommands read the directory of a store.
func storeAdvice(dir string) string {
	return fmt.Sprintf("%q lists the conversations there, and %q shows one", "convo store ls -dir "+dir, "convo store show")
}

// logLine matches the beginning of a log of package filestore.
var logLine = regexp.MustCompile(`^[0-9a-f]{8} [0-9]+ [A-Z] [0-9]+ \{"format":`)

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, headSize) }

// errNoInput says that there is nothing to read: the standard input is a terminal.
var errNoInput = errors.New("name a FILE, or send the input through a pipe")

// cause returns the reason of an error about a file, without its name.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// look reads the head, and refuses what is no JSON.
func (in *input) look() error {
	head, err := in.r.Peek(headSize)
	if err != nil && err != io.EOF {
		return &inputError{name: in.name, text: "reading failed: " + cause(err), err: err}
	}
	refuse := func(text string) error { return &inputError{name: in.name, text: text} }
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")), len(head) > 3 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) && (head[1] == 0) == (head[3] == 0):
		return refuse("the text is UTF-16; convert it, such as with iconv -f UTF-16 -t UTF-8")
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return refuse("the content is compressed; send it through gunzip first")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.r.Discard(3)
		head = head[3:]
	}
	text := bytes.TrimSpace(head)
	if len(text) == 0 {
		if err == io.EOF {
			return refuse("the input is empty; want JSON or JSONL")
		}
		return nil // so much white space: the reader of documents skips it
	}
	isJSON := text[0] == '{' || text[0] == '[' // after a crash of the system a file may hold NULs
	if isFile := strings.HasSuffix(in.name, ".convo"); logLine.Match(text) || isFile && !isJSON {
		dir := "DIR"
		if isFile {
			dir = filepath.Dir(in.name)
		}
		return refuse("this is a log of package filestore; " + storeAdvice(dir))
	}
	if bytes.IndexByte(text, 0) >= 0 && !isJSON && !bytes.HasPrefix(text, []byte("SQLite format 3")) {
		return refuse("the content is binary; want JSON or JSONL")
	}
	in.head = text
	return nil
}

// A document is one JSON value of an input.
type document struct {
	name string
	line int // where it begins
	raw  json.RawMessage
}

// at returns the place of a document for a person.
func (d document) at() string { return fmt.Sprintf("%s:%d", d.name, d.line) }

// documents yields the JSON objects and arrays of an input, which may stand in lines.
func (in *input) documents() iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		if bytes.HasPrefix(in.head, []byte("SQLite format 3")) {
			for _, err := range session.Read(in.r, in.name, session.Options{}) {
				yield(document{}, in.sessionError(err)) // which names what can read the database
				return
			}
		}
		line := 1
		for {
			d, err := in.document(&line)
			if err == io.EOF {
				return
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// document reads one value and counts lines. The error at the end of the input is io.EOF.
func (in *input) document(line *int) (document, error) {
	d := document{name: in.name}
	fail := func(line int, format string, args ...any) (document, error) {
		return document{}, &inputError{name: in.name, line: line, text: fmt.Sprintf(format, args...)}
	}
	depth, quoted, escaped := 0, false, false
	for {
		c, err := in.r.ReadByte()
		if err == io.EOF {
			if depth > 0 {
				return fail(*line, "the input ends inside the JSON value that begins in line %d; the file may be cut off", d.line)
			}
			return d, io.EOF
		}
		if err != nil {
			return document{}, &inputError{name: in.name, line: *line, text: "reading failed: " + cause(err), err: err}
		}
		if depth == 0 {
			switch c {
			case '\n':
				*line++
				continue
			case ' ', '\t', '\r', 0x1e:
				continue
			case '{', '[':
				d.line = *line
			default:
				return fail(*line, "want a JSON object or array, but there is %q", rune(c))
			}
		}
		if len(d.raw) >= maxDocument {
			return fail(d.line, "the JSON value has more than %d MiB; split it", maxDocument>>20)
		}
		d.raw = append(d.raw, c)
		switch {
		case c == '\n':
			*line++
		case quoted:
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return d, d.check()
			}
		}
	}
}

// check returns an error if a document is no JSON.
func (d *document) check() error {
	if json.Valid(d.raw) {
		return nil
	}
	line := d.line
	text := "the JSON is not valid"
	var v json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(d.raw, &v)); ok {
		line += bytes.Count(d.raw[:min(len(d.raw), int(syntax.Offset))], []byte("\n"))
		text += ": " + syntax.Error()
	}
	return &inputError{name: d.name, line: line, text: text}
}
