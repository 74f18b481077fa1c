package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a [Store] in a directory, with a file for each name, which only the user may read. The
// first Save makes the directory. A file is replaced as a whole. Files that are not needed any
// more may be removed at any time: a conversation then begins anew after a restart.
type Dir string

// Load implements [Store].
func (d Dir) Load(_ context.Context, name string) ([]byte, error) {
	file, err := d.file(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Save implements [Store].
func (d Dir) Save(_ context.Context, name string, data []byte) error {
	file, err := d.file(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(d), name+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// file returns the file of a name.
func (d Dir) file(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", fmt.Errorf("transport: %q is no name for a Store", name)
	}
	return filepath.Join(string(d), name+".json"), nil
}
