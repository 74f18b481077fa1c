package clienttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
)

// A Params is a test that a sender loses no field of the parameters of its SDK, a struct P.
type Params[P any] struct {
	Base   P                                     // the required fields
	Values map[string]any                        // of fields that Fields cannot fill
	Owned  []string                              // fields that the History decides: the sender returns a *clients.ParamsError
	Single map[string]any                        // how many answers are asked for, with the value for one: for more, the sender returns a *clients.ParamsError
	Unseen []string                              // fields that are not in a request of the SDK
	Alone  func(url string, params P) error      // a request with the SDK alone
	Send   func(url string, params P) convo.Send // the sender

	// What becomes of a field in the request for a summary is compared with the page
	// PARAMETERS.md of clients.
	Section    string   // of the page
	Prefix     string   // of the fields on the page, such as "OutputConfig."
	Inside     []string // fields that are on the page with those of their own
	Model      string   // of the base
	Summarizer func(url string, params P) convo.Summarizer
}

// Fields sets each exported field of the parameters in turn. What it adds to the path, the
// header and the body of a request by the SDK alone must be in the request of the sender. It
// returns the fields that the SDK itself refuses.
func Fields[P any](t *testing.T, p Params[P]) (refused []string) {
	r := Record(t)
	alone := func(params P) (asked, error) {
		err := p.Alone(r.URL, params)
		return r.asked(t), err
	}
	base, err := alone(p.Base)
	if base.path == "" {
		t.Fatalf("the SDK makes no request of the required fields: %v", err)
	}
	page := pageOf(t, p.Section, p.Prefix)
	on := func(t *testing.T, field, row string) {
		if page[field] != row && !slices.Contains(p.Inside, field) {
			t.Errorf("PARAMETERS.md, %s: %s%s stands in the row %q, want it in %q; clients/summarizer.go decides this", p.Section, p.Prefix, field, page[field], row)
		}
	}
	typ := reflect.TypeFor[P]()
	for field := range page {
		if _, ok := typ.FieldByName(field); !ok {
			t.Errorf("PARAMETERS.md, %s: the SDK has no field %s%s", p.Section, p.Prefix, field)
		}
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() || f.Anonymous {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			params := p.Base
			v := reflect.ValueOf(&params).Elem().Field(i)
			if value, ok := p.Values[f.Name]; ok {
				v.Set(reflect.ValueOf(value))
			} else if !fill(v, 12) {
				t.Fatalf("no value for %s: name one in Values", f.Type)
			}
			one, single := p.Single[f.Name]
			if single || slices.Contains(p.Owned, f.Name) {
				var wrong *clients.ParamsError
				if err := Do(t, p.Send(r.URL, params), convo.User("q")); !errors.As(err, &wrong) {
					t.Errorf("the error is %v, want a *clients.ParamsError", err)
				}
				if got := r.asked(t); got.path != "" {
					t.Errorf("a request was made: %v", got)
				}
				if !single {
					on(t, f.Name, rowRefused)
					return
				}
				v.Set(reflect.ValueOf(one))
			}
			want, err := alone(params)
			if want.path == "" {
				t.Log(err)
				refused = append(refused, f.Name)
				return
			}
			if seen := !reflect.DeepEqual(want, base); seen == slices.Contains(p.Unseen, f.Name) {
				t.Fatalf("seen in a request of the SDK alone: %t; want it to be so, except for the fields in Unseen", seen)
			}
			_ = Do(t, p.Send(r.URL, params), convo.User("q")) // the Recorder answers with an error
			got := r.asked(t)
			if got.path != want.path {
				t.Errorf("the path is %q, want %q", got.path, want.path)
			}
			for name, value := range want.header {
				if !reflect.DeepEqual(got.header[name], value) {
					t.Errorf("the header %s is %q, want %q", name, got.header[name], value)
				}
			}
			if !holds(got.body, want.body) {
				t.Errorf("the body %v lacks some of %v", got.body, want.body)
			}
			row := rowUnseen
			if !reflect.DeepEqual(want, base) {
				row = rowOf(t, r, p.Summarizer(r.URL, params), p.Model, want, base)
			}
			if single && row == rowNever {
				row = rowSingle
			}
			on(t, f.Name, row)
		})
	}
	return refused
}

// The rows of the page.
const (
	rowKept    = "in all requests"
	rowBare    = "not in a bare request for a summary"
	rowNever   = "in no request for a summary"
	rowForm    = "in no request for a summary, which is then bare"
	rowChanged = "changed for a summary"
	rowSingle  = "in no request for a summary; above 1, refused with a `*clients.ParamsError`"
	rowRefused = "refused with a `*clients.ParamsError`"
	rowUnseen  = "in no body"
)

// pageOf returns the row of each field of a section whose name begins with a prefix, and has
// no dot after it.
func pageOf(t *testing.T, section, prefix string) map[string]string {
	data, err := os.ReadFile("../PARAMETERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(data), "\n## "+section+"\n")
	page, _, _ = strings.Cut(page, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 {
			continue
		}
		for field := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(cells[1]), " |"), ", ") {
			if name, ok := strings.CutPrefix(strings.Trim(field, "`"), prefix); ok && name != field && !strings.Contains(name, ".") {
				rows[name] = strings.TrimPrefix(cells[0], "| ")
			}
		}
	}
	return rows
}

// rowOf asks for two summaries, of which the second rides, and returns the row for what
// the SDK has written for a field: want without base.
func rowOf(t *testing.T, r *Recorder, s convo.Summarizer, model string, want, base asked) string {
	answer := convo.Assistant("a")
	answer.Origin.Model = model
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(convo.User("a question"), answer, convo.User("more")); err != nil {
		t.Fatal(err)
	}
	ask := func(sent *convo.Snapshot) (asked, bool) {
		_, _ = s.Summarize(t.Context(), convo.SummaryRequest{ // the Recorder answers with an error
			Prompt: strings.Repeat("sum it up ", 100), Instruction: "Sum it up.", MaxTokens: 1000, Sent: sent, Count: func(s string) int { return len(s) },
		})
		rides := strings.Contains(r.peek(), "a question")
		got := r.asked(t)
		if got.path == "" {
			t.Fatal("no request for a summary was made")
		}
		return got, rides
	}
	bare, _ := ask(nil)
	riding, rides := ask(h.Snapshot())
	inBare, inRiding := bare.has(want, base), riding.has(want, base)
	switch {
	case !rides:
		return rowForm
	case inBare == "other" || inRiding == "other":
		return rowChanged
	case inBare == "all" && inRiding == "all":
		return rowKept
	case inBare == "" && inRiding == "all":
		return rowBare
	case inBare == "" && inRiding == "":
		return rowNever
	}
	return fmt.Sprintf("%q when bare, %q when riding", inBare, inRiding)
}

// has returns what a request has of that in which want differs from base: "all", "other"
// values, or nothing.
func (a asked) has(want, base asked) string {
	for name, value := range want.header {
		if !reflect.DeepEqual(value, base.header[name]) && reflect.DeepEqual(value, a.header[name]) {
			return "all"
		}
	}
	if want.path != base.path {
		if a.path == want.path {
			return "all"
		}
		return ""
	}
	return hasOf(a.body, want.body, base.body)
}

func hasOf(got, want, base any) string {
	fields, ok := want.(map[string]any)
	all, isObject := got.(map[string]any)
	old, _ := base.(map[string]any)
	if !ok || !isObject {
		if holds(got, want) {
			return "all"
		}
		return "other"
	}
	found := ""
	for name, value := range fields {
		if reflect.DeepEqual(value, old[name]) {
			continue
		}
		if _, ok := all[name]; !ok {
			continue
		}
		found = max(found, hasOf(all[name], value, old[name]))
	}
	return found
}

// An asked is what a request says, without what differs from one to the next and what the
// History decides.
type asked struct {
	path   string
	header map[string][]string
	body   any
}

func (r *Recorder) asked(t *testing.T) asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := asked{path: r.path, header: maps.Clone(map[string][]string(r.header))}
	for _, name := range []string{"Authorization", "Content-Length", "X-Amz-Date", "Amz-Sdk-Invocation-Id", "Idempotency-Key"} {
		delete(a.header, name)
	}
	if r.body != "" {
		if err := json.Unmarshal([]byte(r.body), &a.body); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		if fields, ok := a.body.(map[string]any); ok {
			for _, name := range []string{"messages", "contents", "input"} {
				delete(fields, name)
			}
		}
	}
	r.path, r.header, r.body = "", nil, ""
	return a
}

// holds reports whether a JSON value is want, or has all of it and more.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		all, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && holds(all[name], value)
		}
		return ok
	case []any:
		all, ok := got.([]any)
		if !ok || len(all) < len(want) {
			return false
		}
		for i, value := range want {
			ok = ok && holds(all[i], value)
		}
		return ok
	}
	return got == want
}

// fill sets v to a value that is not zero, and reports whether it could: of a struct it
// sets one field. Values are at most depth levels deep.
func fill(v reflect.Value, depth int) (ok bool) {
	if depth == 0 || !v.CanSet() {
		return false
	}
	defer func() {
		if !ok {
			v.SetZero()
		}
	}()
	switch v.Kind() {
	case reflect.String:
		v.SetString("set")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if !fill(key, depth-1) || !fill(value, depth-1) {
			return false
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).Anonymous && fill(v.Field(i), depth-1) {
				return true
			}
		}
		return false
	case reflect.Interface:
		if v.NumMethod() > 0 {
			return false
		}
		v.Set(reflect.ValueOf("set"))
	default:
		return false
	}
	return true
}
