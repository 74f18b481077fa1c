// Command heuristic fits the table of the default token estimator: the
// probability that a token of o200k starts at a byte, given the byte before it.
// The README in this directory lists the text that the table is fitted to, and
// how to get it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	from := flag.String("packages", "", "directory with the unpacked packages, made by fetch.sh")
	to := flag.String("o", "table.bin", "file to write the table to")
	heldOut := flag.String("heldout", "", "directory to write the held-out text to, in one directory per class")
	flag.Parse()
	if *from == "" {
		log.Fatal("-packages is missing: name the directory that fetch.sh filled")
	}
	docs, err := collect(*from)
	if err != nil {
		log.Fatal(err)
	}
	if *heldOut != "" {
		if err := write(*heldOut, docs); err != nil {
			log.Fatal(err)
		}
	}
	report(docs)
	table := fit(label(docs))
	if err := os.WriteFile(*to, pack(append(table[:], runs()...)), 0o644); err != nil {
		log.Fatal(err)
	}
}

// pack returns the table as the file has it: a bit for each entry that is set if the entry
// differs from the previous one, and then the entries that differ.
func pack(table []byte) []byte {
	file := make([]byte, len(table)/8)
	last := byte(0)
	for i, value := range table {
		if value != last {
			file[i/8] |= 1 << (i % 8)
			file = append(file, value)
		}
		last = value
	}
	return file
}

// write writes the held-out documents to files.
func write(dir string, docs []document) error {
	for i, d := range docs {
		if !d.held {
			continue
		}
		path := filepath.Join(dir, d.class, fmt.Sprintf("%06d.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(d.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// report prints how much text each class has. docs must be sorted by class.
func report(docs []document) {
	for len(docs) > 0 {
		class := docs[0].class
		var bytes [2]int
		for len(docs) > 0 && docs[0].class == class {
			if docs[0].held {
				bytes[1] += len(docs[0].text)
			} else {
				bytes[0] += len(docs[0].text)
			}
			docs = docs[1:]
		}
		fmt.Printf("%-16s %9d bytes to fit, %8d held out\n", class, bytes[0], bytes[1])
	}
}
