package strictjson

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Field is a member of an object. Value points to its value: it is a *int, *int64,
// *float64, *bool, *string, *Name or *time.Time, a []Field for an object, or a [Value].
type Field struct {
	Key   string
	Value any
}

// A Name is a short string that repeats; see [Reader.Name].
type Name string

// A Value writes and reads the value of a field of another type.
type Value interface {
	IsZero() bool // whether the field is left out
	Append(dst []byte) []byte
	Read(r *Reader)
}

// AppendFields appends the members that are not zero. An object whose members are all zero
// is also left out.
func AppendFields(dst []byte, fields []Field) []byte {
	for _, f := range fields {
		dst = f.Append(dst)
	}
	return dst
}

// Append appends the member, unless it is zero.
func (f Field) Append(dst []byte) []byte {
	if isZero(&f) {
		return dst
	}
	return f.append(Key(dst, f.Key))
}

// AppendObject appends an object with the fields that are not zero.
func AppendObject(dst []byte, fields []Field) []byte {
	return append(AppendFields(append(dst, '{'), fields), '}')
}

// A Pool keeps variables of a type with their fields, which take many allocations to make.
type Pool[T any] struct {
	Fields func(*T) []Field
	pool   sync.Pool
}

// A pooled is a variable and its fields.
type pooled[T any] struct {
	v      T
	fields []Field
}

// Use calls do with each field of v, and its index.
func (p *Pool[T]) Use(v *T, do func(i int, f *Field)) {
	x := p.take(v)
	for i := range x.fields {
		do(i, &x.fields[i])
	}
	*v = x.v
	p.release(x)
}

// Update sets the optional values of v to those of from that are not left out.
func (p *Pool[T]) Update(v, from *T) {
	x, y := p.take(v), p.take(from)
	for i, f := range x.fields {
		if o, ok := f.Value.(interface{ update(Value) }); ok {
			o.update(y.fields[i].Value.(Value))
		}
	}
	*v = x.v
	p.release(x)
	p.release(y)
}

// take returns a copy of v with its fields.
func (p *Pool[T]) take(v *T) *pooled[T] {
	x, ok := p.pool.Get().(*pooled[T])
	if !ok {
		x = new(pooled[T])
		x.fields = p.Fields(&x.v)
	}
	x.v = *v
	return x
}

func (p *Pool[T]) release(x *pooled[T]) {
	var zero T
	x.v = zero
	p.pool.Put(x)
}

// isZero reports whether the value of f is left out.
func isZero(f *Field) bool {
	switch v := f.Value.(type) {
	case *int:
		return *v == 0
	case *int64:
		return *v == 0
	case *float64:
		return *v == 0
	case *bool:
		return !*v
	case *string:
		return *v == ""
	case *Name:
		return *v == ""
	case *time.Time:
		return v.IsZero()
	case []Field:
		for i := range v {
			if !isZero(&v[i]) {
				return false
			}
		}
		return true
	case Value:
		return v.IsZero()
	}
	panic("strictjson: a field of another type: " + f.Key)
}

// append appends the value.
func (f *Field) append(dst []byte) []byte {
	switch v := f.Value.(type) {
	case *int:
		return strconv.AppendInt(dst, int64(*v), 10)
	case *int64:
		return strconv.AppendInt(dst, *v, 10)
	case *float64:
		return strconv.AppendFloat(dst, *v, 'g', -1, 64)
	case *bool:
		return strconv.AppendBool(dst, *v)
	case *string:
		return AppendString(dst, *v)
	case *Name:
		return AppendString(dst, string(*v))
	case *time.Time:
		return append(v.UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
	case []Field:
		return AppendObject(dst, v)
	case Value:
		return v.Append(dst)
	}
	panic("strictjson: a field of another type: " + f.Key)
}

// Read reads the value.
func (f Field) Read(r *Reader) {
	switch v := f.Value.(type) {
	case *int:
		*v = r.Int()
	case *int64:
		*v = r.Int64()
	case *float64:
		*v = r.Float()
	case *bool:
		*v = r.Bool()
	case *string:
		*v = r.Text()
	case *Name:
		*v = Name(r.Name())
	case *time.Time:
		*v = r.Time()
	case []Field:
		r.Fields(v)
	case Value:
		v.Read(r)
	}
}

// Fields reads an object into fields. Fields that are not in the object, or null there, are
// unchanged.
func (r *Reader) Fields(fields []Field) {
	r.Each(len(fields), func(i int) string { return fields[i].Key }, func(i int) { fields[i].Read(r) })
}

// Each reads an object that has at most n fields, with these keys. It calls read for each field
// that is not null. read reads the value.
func (r *Reader) Each(n int, key func(i int) string, read func(i int)) {
	next := 0 // objects mostly have their fields in this order
	for have := range r.Object {
		i := 0
		for i < n && key((next+i)%n) != string(have) {
			i++
		}
		if i == n {
			r.Unknown(have)
			return
		}
		next = (next + i) % n
		if !r.Null() {
			read(next)
		}
		next++
	}
}

// An array is the value of a list.
type array[E any] struct {
	list *[]E
	add  func(dst []byte, e E) []byte
	read func(r *Reader) E
}

// Array returns the value of a list, with add and read for an element. An empty list is
// left out.
func Array[E any](list *[]E, add func([]byte, E) []byte, read func(*Reader) E) Value {
	return array[E]{list, add, read}
}

// Objects returns the value of a list of objects with these fields.
func Objects[E any](list *[]E, fields func(*E) []Field) Value {
	return Array(list, func(dst []byte, e E) []byte { return AppendObject(dst, fields(&e)) }, func(r *Reader) (e E) {
		r.Fields(fields(&e))
		return e
	})
}

// Pointers returns the value of a list of pointers to objects with these fields.
func Pointers[E any](list *[]*E, fields func(*E) []Field) Value {
	return Array(list, func(dst []byte, e *E) []byte { return AppendObject(dst, fields(e)) }, func(r *Reader) *E {
		e := new(E)
		r.Fields(fields(e))
		return e
	})
}

// Texts returns the value of a list of strings.
func Texts(list *[]string) Value { return Array(list, AppendString, (*Reader).Text) }

// Ints returns the value of a list of integers.
func Ints[N ~int64](list *[]N) Value {
	return Array(list, func(dst []byte, n N) []byte { return strconv.AppendInt(dst, int64(n), 10) }, func(r *Reader) N { return N(r.Int64()) })
}

func (a array[E]) IsZero() bool { return len(*a.list) == 0 }

func (a array[E]) Append(dst []byte) []byte {
	dst = append(dst, '[')
	for _, e := range *a.list {
		dst = a.add(Next(dst), e)
	}
	return append(dst, ']')
}

func (a array[E]) Read(r *Reader) {
	var list []E
	for range r.Array {
		list = append(list, a.read(r))
	}
	*a.list = list
}

// A numbers is the value of as many integers.
type numbers struct {
	most int64
	of   []*int64
}

// Numbers returns the value of as many integers from 0 to most: an array. Those that it lacks
// when it is read are unchanged. It is left out if all are 0.
func Numbers(most int64, of ...*int64) Value { return numbers{most, of} }

func (v numbers) IsZero() bool {
	return !slices.ContainsFunc(v.of, func(n *int64) bool { return *n != 0 })
}

func (v numbers) Append(dst []byte) []byte {
	dst = append(dst, '[')
	for _, n := range v.of {
		dst = strconv.AppendInt(Next(dst), *n, 10)
	}
	return append(dst, ']')
}

func (v numbers) Read(r *Reader) {
	for i := range r.Array {
		n := r.Int64()
		if i >= len(v.of) || n < 0 || n > v.most {
			r.Fail(fmt.Errorf("number %d of %s is %d, want at most %d numbers from 0 to %d", i, r.field, n, len(v.of), v.most))
			return
		}
		*v.of[i] = n
	}
}

// Shown returns the value of a text that is not left out if it is empty.
func Shown(at *string) Value { return shown{at} }

type shown struct{ at *string }

func (v shown) IsZero() bool             { return false }
func (v shown) Append(dst []byte) []byte { return AppendString(dst, *v.at) }
func (v shown) Read(r *Reader)           { *v.at = r.Text() }

// An optional is a value that is left out if the pointer to it is nil.
type optional[E, V any] struct {
	at **E
	of func(*E) V
}

// Optional returns a value that is left out if *at is nil, and not if it is zero. of returns
// the Value of a Field for the variable that *at points to.
func Optional[E, V any](at **E, of func(*E) V) Value { return optional[E, V]{at, of} }

// Plain returns a pointer as it is, for Optional.
func Plain[E any](at *E) *E { return at }

func (o optional[E, V]) IsZero() bool { return *o.at == nil }

func (o optional[E, V]) Append(dst []byte) []byte { return (&Field{Value: o.of(*o.at)}).append(dst) }

func (o optional[E, V]) Read(r *Reader) {
	*o.at = new(E)
	Field{Value: o.of(*o.at)}.Read(r)
}

func (o optional[E, V]) update(from Value) {
	if v := *from.(optional[E, V]).at; v != nil {
		*o.at = v
	}
}
