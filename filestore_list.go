package convo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
)

// List implements [Store]. The times at which files were last changed order the
// heads; Append sets them to Updated. For a log that cannot be read there is an error
// in the place of its head, and the loop may go on. If the log is damaged, that is a
// [*DamageError] whose Key is the name of the file.
func (s *FileStore) List(ctx context.Context, prefix string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		err := s.check(ctx, "any")
		if err == nil {
			err = s.list(ctx, prefix, yield)
		}
		if err != nil && err != errStopped {
			yield(Head{}, inLog("list", prefix, err))
		}
	}
}

func (s *FileStore) list(ctx context.Context, prefix string, yield func(Head, error) bool) error {
	dir, err := s.files().open(s.Dir)
	if err != nil {
		return unlessNotExist(err)
	}
	defer func() { _ = dir.Close() }()
	files, err := dir.list()
	if err != nil {
		return err
	}
	begins := readable(prefix)
	files = slices.DeleteFunc(files, func(f fs.FileInfo) bool {
		return !logName.MatchString(f.Name()) || !strings.HasPrefix(f.Name(), begins)
	})
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		if c := b.ModTime().Compare(a.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, info := range files {
		if ctx.Err() != nil {
			return causeOf(ctx)
		}
		file, tail, err := openTail(ctx, dir, info.Name(), "")
		if file != nil {
			_ = file.Close()
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err == nil && tail.ID == "", err == nil && !strings.HasPrefix(tail.Key, prefix):
			continue
		case err == nil && fileName(tail.Key) != info.Name():
			err = &DamageError{Key: tail.Key, Offset: tail.at, Err: fmt.Errorf("it is in the file %q, which belongs to another key", info.Name())}
		}
		head := tail.Head
		if err != nil {
			head = Head{}
			if damage, ok := errors.AsType[*DamageError](err); ok && damage.Key == "" {
				damage.Key = info.Name()
			}
			err = inLog("list", info.Name(), err)
		}
		if !yield(head, err) {
			return errStopped
		}
	}
	return nil
}
