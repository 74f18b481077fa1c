package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
)

// pageHead is how a page begins.
const pageHead = "<!DOCTYPE html>"

// A pageFile is the FILE of the flag -html, or empty.
type pageFile struct{ name string }

func (p *pageFile) addFlag(flags *cli.Flags, page string) {
	flags.StringVar(&p.name, "html", "", "also write "+page+" to a `FILE`, which is not written over if it is no page")
}

// check returns an error if a page cannot be written to the file without loss.
func (p *pageFile) check() error {
	switch {
	case p.name == "-":
		return errors.New("-html wants the name of a file; the standard output has the text")
	case p.name != "" && !isPage(p.name):
		return errors.New("-html " + p.name + ": the file is there and is no page, so it is not written over; name another one")
	}
	return nil
}

// isPage reports whether there is no such file, or it is empty, a page itself, or no regular
// file. If the FILE of -html is forgotten, the name of a session follows it.
func isPage(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return true
	}
	f, err := os.Open(name)
	if err != nil {
		return true // the error of writing says more
	}
	defer f.Close()
	head := make([]byte, len(pageHead))
	_, err = io.ReadFull(f, head)
	return err == nil && strings.EqualFold(string(head), pageHead)
}

// write writes the page, if there is a file for it.
func (p *pageFile) write(page func(io.Writer) error) error {
	if p.name == "" {
		return nil
	}
	f, err := os.Create(p.name)
	if err != nil {
		return err
	}
	return errors.Join(page(f), f.Close())
}
