package strictjson

import (
	"strconv"
	"time"
)

// A Field is a member of an object. Value points to its value: it is a *int, *int64,
// *float64, *bool, *string or *time.Time, or a []Field for an object.
type Field struct {
	Key   string
	Value any
}

// AppendFields appends the members that are not zero. An object whose members are all zero
// is also left out.
func AppendFields(dst []byte, fields []Field) []byte {
	for _, f := range fields {
		switch v := f.Value.(type) {
		case *int:
			dst = Int(dst, f.Key, *v)
		case *int64:
			dst = Int(dst, f.Key, *v)
		case *float64:
			if *v != 0 {
				dst = strconv.AppendFloat(Key(dst, f.Key), *v, 'g', -1, 64)
			}
		case *bool:
			dst = Bool(dst, f.Key, *v)
		case *string:
			dst = Text(dst, f.Key, *v)
		case *time.Time:
			dst = Time(dst, f.Key, *v)
		case []Field:
			before := len(dst)
			dst = append(Key(dst, f.Key), '{')
			inner := len(dst)
			if dst = AppendFields(dst, v); len(dst) == inner {
				dst = dst[:before]
			} else {
				dst = append(dst, '}')
			}
		default:
			panic("strictjson: a field of another type: " + f.Key)
		}
	}
	return dst
}

// AppendObject appends an object with the fields that are not zero.
func AppendObject(dst []byte, fields []Field) []byte {
	return append(AppendFields(append(dst, '{'), fields), '}')
}

// Fields reads an object into fields. Fields that are not in the object are unchanged.
func (r *Reader) Fields(fields []Field) {
	for key := range r.Object {
		if !r.Field(key, fields) {
			r.Unknown(key)
		}
	}
}

// Field reads the value of key into the field with that key. It reports whether there is
// such a field.
func (r *Reader) Field(key []byte, fields []Field) bool {
	for _, f := range fields {
		if f.Key != string(key) {
			continue
		}
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
		case *time.Time:
			*v = r.Time()
		case []Field:
			r.Fields(v)
		}
		return true
	}
	return false
}
