package measure

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCPUModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: A Fine One 3000\n"), 0o600))
	assert.Equal(t, "A Fine One 3000", cpuModel(file))
	assert.Equal(t, "unknown processor", cpuModel(file+".none"))
}
