package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// ErrCutShort is the error of a run that was not written to its end, or changed since. It
// cannot be judged.
var ErrCutShort = errors.New("the run is not complete")

// ClientFile is the name of the file of a process.
func ClientFile(process string) string {
	return "client-" + process + ".jsonl"
}

// Clients returns the names of the files of all processes of a run.
func Clients(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, clientFiles))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	slices.Sort(names)
	return names, nil
}

// Writer writes the records of one file, for any number of goroutines.
type Writer struct {
	mutex sync.Mutex
	file  *os.File
}

// Create makes a file of a run.
func Create(dir, name string) (*Writer, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Writer{file: file}, nil
}

// Write adds a record. When it returns, the record outlives the process, however that ends.
func (w *Writer) Write(record any) error {
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	_, err = w.file.Write(append(line, '\n'))
	return err
}

// Close ends the file.
func (w *Writer) Close() error {
	return w.file.Close()
}

// Read returns the records of a file in order. A last line without its end is left out: its
// process was killed while it wrote.
func Read[T any](dir, name string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		number := 0
		for line, err := range Lines(dir, name) {
			var record T
			number++
			if err == nil {
				err = decode(line, &record)
			}
			if err != nil {
				yield(record, fmt.Errorf("%s, line %d: %w", name, number, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// Lines returns the lines that Read reads. Each is good until the next.
func Lines(dir, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		reader := bufio.NewReaderSize(file, 1<<16)
		for {
			line, err := reader.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				var rest []byte
				line = slices.Clone(line)
				rest, err = reader.ReadBytes('\n')
				line = append(line, rest...)
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// decode reads a line. A field that the record does not have is an error: it was written by
// somebody who meant more than is understood here.
func decode(line []byte, record any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(record); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(line[decoder.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%.20q follows the record", rest)
	}
	return nil
}

// Finish writes the manifest of a complete run, with the lines of every file as they are now.
func Finish(dir string, run Run) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	run.Lines = map[string]int{}
	for _, path := range names {
		name := filepath.Base(path)
		if run.Lines[name], _, err = countLines(dir, name); err != nil {
			return err
		}
	}
	manifest, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ManifestFile)
	if err := os.WriteFile(path+".new", append(manifest, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Open returns the manifest of a run, or ErrCutShort if a file is missing or has lost lines.
func Open(dir string) (Run, error) {
	var run Run
	manifest, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return run, fmt.Errorf("%w: there is no %s in %s", ErrCutShort, ManifestFile, dir)
	}
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(manifest, &run); err != nil {
		return run, fmt.Errorf("%w: %s: %w", ErrCutShort, ManifestFile, err)
	}
	own := []string{WALFile, SinkFile, FaultsFile, FinalFile} // Nobody kills the one who writes these.
	for _, name := range own {
		if _, found := run.Lines[name]; !found {
			return run, fmt.Errorf("%w: %s is not in %s", ErrCutShort, name, ManifestFile)
		}
	}
	for name, want := range run.Lines {
		lines, half, err := countLines(dir, name)
		if err != nil {
			return run, fmt.Errorf("%w: %w", ErrCutShort, err)
		}
		if half && slices.Contains(own, name) {
			return run, fmt.Errorf("%w: the last line of %s has no end", ErrCutShort, name)
		}
		if lines != want {
			return run, fmt.Errorf("%w: %s has %d lines, of %d", ErrCutShort, name, lines, want)
		}
	}
	return run, nil
}

// countLines counts the lines of a file that have an end, and tells whether half a one follows.
func countLines(dir, name string) (count int, half bool, err error) {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<16)
	for {
		switch part, err := reader.ReadSlice('\n'); {
		case errors.Is(err, io.EOF):
			return count, half || len(part) > 0, nil
		case err == nil:
			count++
			half = false
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, false, err
		default:
			half = true
		}
	}
}
