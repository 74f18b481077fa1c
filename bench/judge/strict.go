package judge

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Strict looks through a value of an SDK's type that a request was read into, and
// returns an objection for
//
//   - a union that the request should set and that has no variant, or several;
//   - a field that the SDK requires and that is not there;
//   - a string of a type that has constants and is none of them.
//
// The rules are those of the tags and names of the SDKs that Stainless generates
// (openai-go, anthropic-sdk-go), and of any type of strings with constants.
func Strict(v any) []Objection {
	s := strict{}
	s.walk("", reflect.ValueOf(v))
	return s.found
}

type strict struct{ found []Objection }

func (s *strict) object(path, why string) { s.found = append(s.found, Objection{path, why}) }

func (s *strict) walk(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.walk(path, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			s.walk(path+"[]", v.Index(i))
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			s.walk(path+"[]", i.Value())
		}
	case reflect.Struct:
		s.fields(path, v)
	case reflect.String:
		s.word(path, v)
	}
}

func (s *strict) fields(path string, v reflect.Value) {
	t := v.Type()
	variants, set := 0, 0
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := v.Field(i)
		if strings.Contains(options, "inline") && name == "" { // a variant of a union
			variants++
			if !field.IsZero() {
				set++
				s.walk(path, field)
			}
			continue
		}
		switch name {
		case "-":
			continue
		case "":
			name = f.Name
		}
		switch {
		case !field.IsZero():
			s.walk(join(path, name), field)
		case f.Tag.Get("api") == "required" && strings.Contains(options, "omit"):
			s.object(join(path, name), "required, and not there")
		}
	}
	if variants > 0 && set != 1 {
		s.object(path, fmt.Sprintf("%d variants of %s", set, t.Name()))
	}
}

// word checks a string against the constants of its type.
func (s *strict) word(path string, v reflect.Value) {
	t := v.Type()
	if t.PkgPath() == "" || v.String() == "" {
		return
	}
	if m := v.MethodByName("Default"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		if want := m.Call(nil)[0].String(); want != v.String() {
			s.object(path, "not "+strconv.Quote(want))
		}
		return
	}
	if words := constants(t.PkgPath())[t.Name()]; len(words) > 0 && !words[v.String()] {
		s.object(path, "not a "+t.Name())
	}
}

var sources sync.Map // of func() map[string]map[string]bool, by package path

// constants returns the string constants of a package by type, which it reads from the
// source. It panics if the source cannot be found, since a judge without it would say
// yes too often.
func constants(pkg string) map[string]map[string]bool {
	f, ok := sources.Load(pkg)
	if !ok {
		f, _ = sources.LoadOrStore(pkg, sync.OnceValue(func() map[string]map[string]bool {
			list, err := readConstants(pkg)
			if err != nil {
				panic(err)
			}
			return list
		}))
	}
	return f.(func() map[string]map[string]bool)()
}

func readConstants(pkg string) (map[string]map[string]bool, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("the source of %s: %w", pkg, err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		return nil, err
	}
	list := map[string]map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					add(list, spec.(*ast.ValueSpec))
				}
			}
		}
	}
	return list, nil
}

// add adds a constant with a type and a text to the list.
func add(list map[string]map[string]bool, spec *ast.ValueSpec) {
	name, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range spec.Values {
		text, ok := v.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		if word, err := strconv.Unquote(text.Value); err == nil {
			if list[name.Name] == nil {
				list[name.Name] = map[string]bool{}
			}
			list[name.Name][word] = true
		}
	}
}
