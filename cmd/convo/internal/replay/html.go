package replay

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// mostPlots is how many sessions a page draws, those with the most requests.
const mostPlots = 12

const pageStyle = `:root{color-scheme:light dark;--bg:#fff;--text:#24292f;--faint:#57606a;--line:#d0d7de;--soft:#f6f8fa;--recorded:#57606a;--nothing:#cf222e;--trim:#9a6700;--convo:#0969da;--window:#8250df}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--text:#e6edf3;--faint:#8d96a0;--line:#30363d;--soft:#161b22;--recorded:#8d96a0;--nothing:#ff7b72;--trim:#d29922;--convo:#58a6ff;--window:#d2a8ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:60rem;background:var(--bg);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem;overflow-wrap:anywhere}
p{margin:.5rem 0;max-width:46rem;overflow-wrap:anywhere}
.faint{color:var(--faint)}
.warning{border-left:4px solid var(--nothing);padding:.25rem .75rem;background:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1rem 0}
th,td{padding:.2rem .75rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th:first-child{text-align:left;font-weight:400}
thead th{font-weight:600}
th.in{padding-left:1.75rem}
th.group{font-weight:600;text-align:left}
.recorded{--c:var(--recorded)}.nothing{--c:var(--nothing)}.trim{--c:var(--trim)}.convo{--c:var(--convo)}.limit{--c:var(--window)}
thead .recorded,thead .nothing,thead .trim,thead .convo{color:var(--c)}
svg{display:block;width:100%;min-width:36rem;height:auto;margin:.5rem 0 1.25rem}
svg text{fill:var(--faint);font:12px system-ui,sans-serif}
svg text.title{fill:var(--text);font-size:14px;font-weight:600}
svg .grid{stroke:var(--line)}
svg path.curve{fill:none;stroke:var(--c);stroke-width:1.75}
svg path.recorded{stroke-dasharray:2 2}
svg path.limit{stroke:var(--c);stroke-dasharray:6 4}
svg .key{fill:var(--c);font-weight:600}
svg circle{fill:var(--recorded)}
@media (max-width:40rem){body{font-size:15px}th,td{padding:.2rem .4rem}}
`

// WriteHTML writes a page of one file, without scripts, that loads nothing: the table and the
// notes of the total, and plots of the sessions.
func WriteHTML(w io.Writer, total *Report, sessions []*Report) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>convo replay</title>\n<style>\n" + pageStyle + "</style>\n</head>\n<body>\n<h1>What each request would have held</h1>\n")
	fmt.Fprintf(&b, "<p class=\"faint\">%s</p>\n", escape(total.title()))
	if warning := total.Warning(); warning != "" {
		fmt.Fprintf(&b, "<p class=\"warning\">%s</p>\n", escape(warning))
	}
	b.WriteString("<div class=\"scroll\"><table>\n<thead><tr><th></th>")
	for _, p := range Policies {
		fmt.Fprintf(&b, "<th class=%q>%s</th>", string(p), p)
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for _, row := range total.rows() {
		label := strings.TrimSpace(row.label)
		if len(row.cells) == 0 {
			fmt.Fprintf(&b, "<tr><th class=\"group\" colspan=\"%d\">%s</th></tr>\n", 1+len(Policies), escape(label))
			continue
		}
		class := ""
		if label != row.label {
			class = " class=\"in\""
		}
		fmt.Fprintf(&b, "<tr><th%s>%s</th>", class, escape(label))
		for _, c := range row.cells {
			fmt.Fprintf(&b, "<td>%s</td>", escape(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n")
	drawn := mostRequests(sessions)
	for _, r := range drawn {
		if len(sessions) > 1 {
			fmt.Fprintf(&b, "<h2>%s</h2>\n", escape(nameOf(r)))
		}
		b.WriteString("<div class=\"scroll\">\n")
		plots(&b, r)
		b.WriteString("</div>\n")
		if len(total.Compactions) > mostWritten && len(r.Compactions) > 0 {
			fmt.Fprintf(&b, "<details><summary>%s</summary>\n", escape(cli.Plural(len(r.Compactions), "compaction")))
			for i, c := range r.Compactions {
				fmt.Fprintf(&b, "<p>%s</p>\n", escape(c.text(i+1)))
			}
			b.WriteString("</details>\n")
		}
	}
	if n := len(sessions) - len(drawn); n > 0 {
		fmt.Fprintf(&b, "<p class=\"faint\">%s with fewer requests not drawn.</p>\n", escape(cli.Plural(n, "session")))
	}
	b.WriteString("<h2>What the figures mean</h2>\n")
	for _, note := range total.Notes() {
		fmt.Fprintf(&b, "<p>%s</p>\n", escape(note))
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func escape(s string) string { return html.EscapeString(s) }

func nameOf(r *Report) string {
	name := visible(r.Name)
	if r.Session != "" {
		name = strings.TrimSpace(name + " " + visible(r.Session))
	}
	return name
}

// mostRequests returns the sessions with the most requests, in the order in which they came.
func mostRequests(sessions []*Report) (most []*Report) {
	for _, r := range sessions {
		if r.Requests > 0 {
			most = append(most, r)
		}
	}
	if len(most) <= mostPlots {
		return most
	}
	sorted := slices.SortedStableFunc(slices.Values(most), func(a, b *Report) int { return b.Requests - a.Requests })
	return slices.DeleteFunc(most, func(r *Report) bool { return !slices.Contains(sorted[:mostPlots], r) })
}
