package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// synthetic generates the classes of which no package holds enough. The text is
// the same each time.
func synthetic() []document {
	makers := []struct {
		class string
		size  int
		text  func(*rand.Rand) string
	}{
		{"gen-json", 2 << 20, func(r *rand.Rand) string { return records(r, "") }},
		{"gen-json-pretty", 2 << 20, func(r *rand.Rand) string { return records(r, "  ") }},
		{"gen-base64", 1 << 20, encoded},
		{"gen-hex", 1 << 20, hexes},
		{"gen-uuid", 1 << 20, uuids},
		{"gen-csv", 1 << 20, csv},
		{"gen-numbers", 1 << 20, numbers},
		{"gen-log", 2 << 20, logs},
		{"gen-emoji", 1 << 20, emoji},
		{"gen-listing", 1 << 20, listing},
		{"gen-runs", 512 << 10, repeats},
		{"gen-unicode", 256 << 10, scripts},
		{"gen-json-wide", 2 << 20, func(r *rand.Rand) string { return records(r, []string{"    ", "\t"}[r.IntN(2)]) }},
	}
	var docs []document
	for i, m := range makers {
		for n, size := uint64(0), 0; size < m.size; n++ {
			text := m.text(rand.New(rand.NewPCG(uint64(i), n)))
			size += len(text)
			docs = append(docs, pieces(m.class, fmt.Sprint(n), text)...)
		}
	}
	return docs
}

var words = strings.Fields(`time year people way day thing world life hand part child eye place work week case
point government company number group problem fact account active address admin agent amount api archive author balance
batch billing block branch browser bucket build button cache cancel card category channel chart check city client
cloud code color column comment commit config connection contact container content context cost country create
currency customer data database date default delete delivery deploy description detail device disabled discount
document domain draft email enabled endpoint engine entity entry environment error event example expired export
failed field file filter first flag flight folder format function gateway global handler hash header height
history host hotel hour id image import index info input instance integer internal invoice item job journal key
label language last level library limit line link list local location lock log login manager map master member
memory message meta method metric mobile mode model module monitor month name network next node note object offer
offset open option order origin output owner package page parent password path payment pending period phone plan
platform policy pool port position price primary priority process product profile project property provider public
quantity query queue range rate reason record refund region release remote report request reservation reset resource
response result retry role root route rule sale schedule schema scope score search secret section segment sender
server service session setting shape share shipping size source space stack stage start state status step stock
storage store stream street string subject success summary support switch system table target task team template
tenant test text thread ticket title token tool topic total track traffic transfer trigger type unit update upload
url user valid value vendor version video view visible warning weight width window worker workspace zone Berlin Paris
London Tokyo Madrid Lisbon Warsaw Vienna Dublin Anna James Maria Chen Ahmed Olga Pierre Sofia Ivan Yuki Garcia Smith
Mueller Silva Kim Nguyen Kowalski Rossi`)

func word(r *rand.Rand) string { return words[r.IntN(len(words))] }

func phrase(r *rand.Rand, n int) string {
	s := make([]string, n)
	for i := range s {
		s[i] = word(r)
	}
	return strings.Join(s, " ")
}

func stamp(r *rand.Rand) time.Time {
	return time.Unix(1.5e9+r.Int64N(3e8), r.Int64N(1e9)).UTC()
}

func token(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func uuid(r *rand.Rand) string {
	h := hex.EncodeToString(token(r, 16))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

func key(r *rand.Rand) string {
	a, b := strings.ToLower(word(r)), strings.ToLower(word(r))
	switch r.IntN(4) {
	case 0:
		return a
	case 1:
		return a + "_" + b
	case 2:
		return a + strings.ToUpper(b[:1]) + b[1:]
	default:
		return a + "_id"
	}
}

func value(r *rand.Rand, depth int) any {
	switch n := r.IntN(16); {
	case n < 3:
		return phrase(r, 1+r.IntN(3))
	case n < 4:
		return phrase(r, 5+r.IntN(15)) + "."
	case n < 6:
		return r.IntN([]int{10, 100, 10_000, 10_000_000}[r.IntN(4)])
	case n < 8:
		return float64(r.IntN(1_000_000)) / 100
	case n < 9:
		return r.IntN(2) == 0
	case n < 10:
		return nil
	case n < 11:
		return stamp(r).Format(time.RFC3339)
	case n < 12:
		switch r.IntN(4) {
		case 0:
			return uuid(r)
		case 1:
			return "https://" + word(r) + ".example.com/" + word(r) + "/" + word(r) + "?id=" + fmt.Sprint(r.IntN(99999))
		case 2:
			return strings.ToLower(word(r)+"."+word(r)) + "@example.com"
		default:
			return strings.ToUpper(word(r)) + fmt.Sprint(r.IntN(9999))
		}
	case n < 14 && depth < 3:
		list := make([]any, 1+r.IntN(4))
		for i := range list {
			list[i] = value(r, depth+1)
		}
		return list
	case depth < 3:
		return object(r, depth+1)
	default:
		return word(r)
	}
}

func object(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range 2 + r.IntN(6) {
		m[key(r)] = value(r, depth)
	}
	return m
}

func records(r *rand.Rand, indent string) string {
	// The records of one result have the same keys.
	shape := make([]string, 3+r.IntN(8))
	for i := range shape {
		shape[i] = key(r)
	}
	list := make([]any, 1+r.IntN(20))
	for i := range list {
		m := map[string]any{}
		for _, k := range shape {
			m[k] = value(r, 1)
		}
		list[i] = m
	}
	var v any = list
	if len(list) == 1 {
		v = list[0]
	}
	var b []byte
	if indent == "" {
		b, _ = json.Marshal(v)
	} else {
		b, _ = json.MarshalIndent(v, "", indent)
	}
	return string(b)
}

func encoded(r *rand.Rand) string {
	n := 100 + r.IntN(3000)
	switch r.IntN(3) {
	case 0: // base64 of text
		return base64.StdEncoding.EncodeToString([]byte(phrase(r, n/6)))
	case 1: // in lines of 76, as in mail
		s := base64.StdEncoding.EncodeToString(token(r, n))
		var out strings.Builder
		for len(s) > 76 {
			out.WriteString(s[:76] + "\n")
			s = s[76:]
		}
		return out.String() + s
	default:
		return base64.RawURLEncoding.EncodeToString(token(r, n))
	}
}

func hexes(r *rand.Rand) string {
	var out strings.Builder
	for range 20 + r.IntN(100) {
		h := hex.EncodeToString(token(r, []int{4, 16, 20, 32}[r.IntN(4)]))
		switch r.IntN(4) {
		case 0:
			out.WriteString("0x" + strings.ToUpper(h) + " ")
		case 1:
			out.WriteString(h + "\n")
		case 2:
			out.WriteString(h + "  " + word(r) + "/" + word(r) + ".go\n")
		default:
			out.WriteString("sha256:" + h + ",")
		}
	}
	return out.String()
}

func uuids(r *rand.Rand) string {
	var out strings.Builder
	sep := []string{"\n", ", ", "\",\"", " "}[r.IntN(4)]
	for range 20 + r.IntN(50) {
		out.WriteString(uuid(r) + sep)
	}
	return out.String()
}

func csv(r *rand.Rand) string {
	columns := make([]int, 3+r.IntN(8))
	cells := make([]string, len(columns))
	for i := range columns {
		columns[i] = r.IntN(8)
		cells[i] = key(r)
	}
	var out strings.Builder
	out.WriteString(strings.Join(cells, ",") + "\n")
	for range 20 + r.IntN(60) {
		for i, c := range columns {
			switch c {
			case 0:
				cells[i] = fmt.Sprint(r.IntN(1000))
			case 1:
				cells[i] = fmt.Sprintf("%.2f", r.Float64()*1000)
			case 2:
				cells[i] = stamp(r).Format("2006-01-02")
			case 3:
				cells[i] = word(r)
			case 4:
				cells[i] = fmt.Sprint(r.IntN(1_000_000_000))
			case 5:
				cells[i] = fmt.Sprintf("%.1f", r.NormFloat64()*20)
			case 6:
				cells[i] = "\"" + phrase(r, 2) + "\""
			case 7:
				cells[i] = fmt.Sprint(r.IntN(100))
			}
		}
		out.WriteString(strings.Join(cells, ",") + "\n")
	}
	return out.String()
}

func numbers(r *rand.Rand) string {
	var out strings.Builder
	sep := []string{" ", ", ", "\n", "\t", ","}[r.IntN(5)]
	form := []string{"%.6f", "%.3f", "%v", "%.0f", "%e"}[r.IntN(5)]
	scale := []float64{1, 100, 1e6}[r.IntN(3)]
	for range 100 + r.IntN(200) {
		fmt.Fprintf(&out, form+sep, r.NormFloat64()*scale)
	}
	return out.String()
}

func logs(r *rand.Rand) string {
	var out strings.Builder
	style := r.IntN(4)
	for range 20 + r.IntN(60) {
		level := []string{"INFO", "WARN", "ERROR", "DEBUG"}[r.IntN(4)]
		t := stamp(r)
		switch style {
		case 0:
			fmt.Fprintf(&out, "%s %-5s [%s-%d] %s.%s: %s %s=%d\n", t.Format("2006-01-02 15:04:05.000"), level, word(r), r.IntN(64), word(r), word(r), phrase(r, 3+r.IntN(8)), key(r), r.IntN(10000))
		case 1:
			fmt.Fprintf(&out, "time=%s level=%s msg=\"%s\" %s=%s %s=%d took=%.3fms\n", t.Format(time.RFC3339Nano), level, phrase(r, 4), key(r), uuid(r), key(r), r.IntN(1e6), r.Float64()*500)
		case 2:
			fmt.Fprintf(&out, "%d.%d.%d.%d - - [%s] \"GET /%s/%s?%s=%d HTTP/1.1\" %d %d \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), t.Format("02/Jan/2006:15:04:05 -0700"), word(r), word(r), key(r), r.IntN(9999), 200+r.IntN(5)*100, r.IntN(100000))
		default:
			fmt.Fprintf(&out, "%s host%d %s[%d]: %s from %d.%d.%d.%d port %d\n", t.Format(time.Stamp), r.IntN(20), word(r), r.IntN(60000), phrase(r, 3+r.IntN(6)), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(65536))
			if r.IntN(5) == 0 {
				fmt.Fprintf(&out, "\tat com.%s.%s.%s(%s.java:%d)\n", word(r), word(r), word(r), word(r), r.IntN(900))
			}
		}
	}
	return out.String()
}
