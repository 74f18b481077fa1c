package filestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A store that wrote the newest record itself does not take it for whole where its bytes
// have changed since: a NUL makes it a torn tail, which the next Append cuts off, and
// any other byte is damage.
func TestStore_NewestRecordChanged(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    byte
		torn bool
	}{{"a NUL", 0, true}, {"another byte", 'X', false}} {
		for _, records := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d records", tt.name, records), func(t *testing.T) {
				dir := t.TempDir()
				store := &filestore.Store{Dir: dir}
				h, err := convo.Open(t.Context(), store, "a", nil)
				require.NoError(t, err)
				for i := range records {
					_, err := h.Append(convo.User(fmt.Sprint("question ", i)), convo.Assistant("answer"))
					require.NoError(t, err)
					require.NoError(t, h.Save(t.Context()))
				}
				files, err := filepath.Glob(filepath.Join(dir, "*.convo"))
				require.NoError(t, err)
				require.Len(t, files, 1)
				data, err := os.ReadFile(files[0])
				require.NoError(t, err)
				data[bytes.LastIndex(data, []byte("question"))] = tt.b
				require.NoError(t, os.WriteFile(files[0], data, 0o600))

				o, err := convo.Open(t.Context(), store, "a", nil)
				if !tt.torn {
					require.ErrorAs(t, err, new(*convo.DamageError))
					_, err = h.Append(convo.User("behind it"))
					require.NoError(t, err)
					require.ErrorAs(t, h.Save(t.Context()), new(*convo.DamageError))
					return
				}
				require.NoError(t, err)
				assert.Equal(t, records > 1, o.Status().Torn > 0)
				_, err = o.Append(convo.User("hello"))
				require.NoError(t, err)
				rounds := 0
				for err = o.Save(t.Context()); errors.As(err, new(*convo.ConflictError)) && rounds < 10; rounds++ {
					if _, _, err = o.Reload(t.Context()); err == nil {
						err = o.Save(t.Context())
					}
				}
				require.NoError(t, err)
				again, err := convo.Open(t.Context(), &filestore.Store{Dir: dir}, "a", nil)
				require.NoError(t, err)
				assert.Equal(t, o.Len(), again.Len())
				assert.Zero(t, again.Status().Torn)
			})
		}
	}
}
