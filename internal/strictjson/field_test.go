package strictjson_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// sample has a field of each type.
type sample struct {
	i    int
	n    int64
	f    float64
	b    bool
	s    string
	t    time.Time
	name strictjson.Name
	x, y int
}

func (v *sample) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "i", Value: &v.i},
		{Key: "n", Value: &v.n},
		{Key: "f", Value: &v.f},
		{Key: "b", Value: &v.b},
		{Key: "s", Value: &v.s},
		{Key: "t", Value: &v.t},
		{Key: "name", Value: &v.name},
		{Key: "in", Value: []strictjson.Field{{Key: "x", Value: &v.x}, {Key: "y", Value: &v.y}}},
	}
}

func TestFields(t *testing.T) {
	at := time.Date(2026, 11, 23, 8, 0, 0, 5, time.UTC)
	for _, tt := range []struct {
		v    sample
		want string
	}{
		{sample{}, `{}`},
		{sample{i: -1, n: 1 << 52, f: 0.25, b: true, s: "a\"b", t: at, name: "n", x: 1, y: 2},
			`{"i":-1,"n":4503599627370496,"f":0.25,"b":true,"s":"a\"b","t":"2026-11-23T08:00:00.000000005Z","name":"n","in":{"x":1,"y":2}}`},
		{sample{y: 2}, `{"in":{"y":2}}`},
	} {
		got := string(strictjson.AppendObject(nil, tt.v.fields()))
		assert.Equal(t, tt.want, got)
		var v sample
		r := strictjson.NewReader([]byte(got))
		r.Fields(v.fields())
		r.End()
		require.NoError(t, r.Err(), got)
		assert.Equal(t, tt.v, v, got)
	}
}

func TestFields_Refuses(t *testing.T) {
	for data, want := range map[string]string{
		`{"z":1}`:         `unknown field "z"`,
		`{"in":{"z":1}}`:  `unknown field "z"`,
		`{"i":"1"}`:       `byte 5 is "\"", want a digit`,
		`{"i":1,"i":2}`:   `"i"`,
		`{"in":[]}`:       `want an object`,
		`{"b":1}`:         `byte 5 is "1", want`,
		`{"t":"morning"}`: `want a time`,
	} {
		r := strictjson.NewReader([]byte(data))
		r.Fields(new(sample).fields())
		r.End()
		assert.ErrorContains(t, r.Err(), want, data)
	}
}

func TestAppendFields_OtherType(t *testing.T) {
	assert.Panics(t, func() { strictjson.AppendFields(nil, []strictjson.Field{{Key: "k", Value: 1}}) })
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		data  string
		want  [2]int64
		fault string
	}{
		{`{}`, [2]int64{7, 8}, ""},
		{`{"n":[]}`, [2]int64{7, 8}, ""},
		{`{"n":[1]}`, [2]int64{1, 8}, ""},
		{`{"n":[0,9]}`, [2]int64{0, 9}, ""},
		{`{"n":[0,10]}`, [2]int64{}, "number 1 of n is 10, want at most 2 numbers from 0 to 9"},
		{`{"n":[-1]}`, [2]int64{}, "number 0 of n is -1"},
		{`{"n":[1,1,1]}`, [2]int64{}, "number 2 of n is 1"},
		{`{"n":["1"]}`, [2]int64{}, "want a digit"},
	} {
		a, b := int64(7), int64(8)
		fields := []strictjson.Field{{Key: "n", Value: strictjson.Numbers(9, &a, &b)}}
		r := strictjson.NewReader([]byte(tt.data))
		r.Fields(fields)
		r.End()
		if tt.fault != "" {
			assert.ErrorContains(t, r.Err(), tt.fault, tt.data)
			continue
		}
		require.NoError(t, r.Err(), tt.data)
		assert.Equal(t, tt.want, [2]int64{a, b}, tt.data)
		if tt.want[1] == 9 {
			assert.Equal(t, tt.data, string(strictjson.AppendObject(nil, fields)))
		}
	}
	zero := int64(0)
	assert.Equal(t, "{}", string(strictjson.AppendObject(nil, []strictjson.Field{{Key: "n", Value: strictjson.Numbers(9, &zero)}})))
}

func TestReader_Peek(t *testing.T) {
	for _, tt := range []struct{ data, value, fault string }{
		{`{"s":"a","i":3}`, "a", ""},
		{`{"i":3,"in":{"x":4,"y":5},"s":"a\u0062"}`, "ab", ""},
		{`{"i":3}`, "", ""},
		{`{"s":null}`, "", ""},
		{`{"i":{"s"`, "", "want"},
		{`{"s":4}`, "", "want a string"},
		{`[]`, "", "want an object"},
	} {
		r := strictjson.NewReader([]byte(tt.data))
		assert.Equal(t, tt.value, string(r.Peek("s")), tt.data)
		var v sample
		r.Fields(v.fields())
		r.End()
		if tt.fault != "" {
			assert.ErrorContains(t, r.Err(), tt.fault, tt.data)
			continue
		}
		require.NoError(t, r.Err(), tt.data)
		assert.Equal(t, tt.value, v.s, "the object is read after it")
	}
}

func TestReader_PeekInt(t *testing.T) {
	r := strictjson.NewReader([]byte(` {"a":[1],"version":3,"b":{}}`))
	assert.Equal(t, 3, r.PeekInt("version"))
	assert.Zero(t, r.PeekInt("other"))
	r.Skip()
	r.End()
	require.NoError(t, r.Err(), "the object is still next")
	r = strictjson.NewReader([]byte(`{"version":"3"}`))
	r.PeekInt("version")
	require.Error(t, r.Err())
}

// A Pool keeps no value, and what do has changed is in the variable.
func TestPool(t *testing.T) {
	p := strictjson.Pool[sample]{Fields: (*sample).fields}
	for n := range 3 {
		v := sample{s: "text"}
		if n == 1 {
			v.n = 7
		}
		data := []byte("{")
		p.Use(&v, func(i int, f *strictjson.Field) {
			assert.Equal(t, v.fields()[i].Key, f.Key)
			data = f.Append(data)
			if f.Key == "i" {
				f.Read(strictjson.NewReader([]byte("5")))
			}
		})
		want := strictjson.AppendFields([]byte("{"), (&sample{s: "text", n: v.n}).fields())
		assert.Equal(t, string(want), string(data), "without 5, which is read later")
		assert.Equal(t, 5, v.i)
	}
}

func TestPointers(t *testing.T) {
	list := []*sample{{i: 1}, {s: "b"}}
	data := strictjson.AppendObject(nil, []strictjson.Field{{Key: "list", Value: strictjson.Pointers(&list, (*sample).fields)}})
	assert.JSONEq(t, `{"list":[{"i":1},{"s":"b"}]}`, string(data))
	var got []*sample
	r := strictjson.NewReader(data)
	r.Fields([]strictjson.Field{{Key: "list", Value: strictjson.Pointers(&got, (*sample).fields)}})
	require.NoError(t, r.Err())
	assert.Equal(t, list, got)
}

func TestShown(t *testing.T) {
	s := ""
	fields := []strictjson.Field{{Key: "s", Value: strictjson.Shown(&s)}}
	assert.Equal(t, `{"s":""}`, string(strictjson.AppendObject(nil, fields)))
	strictjson.NewReader([]byte(`{"s":"é"}`)).Fields(fields)
	assert.Equal(t, "é", s)
}
