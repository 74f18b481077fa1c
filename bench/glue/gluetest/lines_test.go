package gluetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want int
	}{
		"nothing":              {"package p\n", 0},
		"imports do not count": {"package p\n\nimport (\n\t\"fmt\"\n)\n\nvar _ = fmt.Sprint\n", 1},
		"one import":           {"package p\n\nimport \"fmt\"\n\nvar _ = fmt.Sprint\n", 1},
		"blank lines":          {"package p\n\nfunc f() {\n\n\tg()\n\n}\n", 3},
		"comments":             {"package p\n\n// f is\n// a function.\nfunc f() {} // here\n/* and\nthis */\n", 1},
		"several on a line":    {"package p\n\nfunc f() { g(); h() }\n", 1},
		"a long string":        {"package p\n\nvar s = `one\ntwo\nthree` // lines\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "p.go")
			require.NoError(t, os.WriteFile(file, []byte(c.src), 0o600))
			n, err := lines(file)
			require.NoError(t, err)
			assert.Equal(t, c.want, n)
		})
	}
	_, err := lines("none.go")
	assert.Error(t, err)
}
