// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

// writeJSON writes a value as one line of JSON, with text of the server escaped.
func writeJSON(w io.Writer, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(line.Bytes()))
	return err
}

// A shower writes content for the user. It writes text escaped, and images, audio and other
// data to files in a directory, whose names it shows.
type shower struct {
	out io.Writer
	dir string
}

// dirFlag adds the flag for the directory of a shower. The directory is checked before a
// tool is called, because the result could otherwise be lost.
func dirFlag(f *flag.FlagSet, dir *string) {
	f.Func("dir", "write files to this `directory` (default \".\")", func(name string) error {
		*dir = name
		info, err := os.Stat(name)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
		return err
	})
}

// contents writes blocks of content.
func (s *shower) contents(blocks ...mcp.Content) error {
	for _, block := range blocks {
		if err := s.content(block); err != nil {
			return err
		}
	}
	return nil
}

func (s *shower) content(block mcp.Content) error {
	switch c := block.(type) {
	case *mcp.TextContent:
		return s.text(c.Text)
	case *mcp.ImageContent:
		return s.file("image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		return s.file("audio", c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		return s.text(strings.TrimSpace("link to " + c.URI + " " + c.Description))
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return s.resource(c.Resource)
		}
	}
	return writeJSON(s.out, block)
}

func (s *shower) resource(r *mcp.ResourceContents) error {
	if r.Blob == nil {
		return s.text(r.Text)
	}
	return s.file("resource", r.MIMEType, r.Blob)
}

// text writes text, ending with a line break.
func (s *shower) text(text string) error {
	_, err := fmt.Fprintln(s.out, strings.TrimSuffix(printable.Text(text), "\n"))
	return err
}

// maxFiles limits how many file names are tried.
const maxFiles = 10_000

// file writes data to a new file. Only the extension of its name depends on the server, and
// it is one that is known for the MIME type. psi chooses the name: one chosen by the server
// could be a path, a dot-file or a program.
func (s *shower) file(kind, mimeType string, data []byte) error {
	extension := extensionOf(mimeType)
	for i := range maxFiles {
		name := filepath.Join(s.dir, fmt.Sprintf("psi-%s-%d%s", kind, i+1, extension))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user's directory
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s: %d bytes of %s\n", name, len(data), printable.Line(mimeType))
		return err
	}
	return fmt.Errorf("there are already %d files such as psi-%s-1%s in %s", maxFiles, kind, extension, s.dir)
}

// extensions maps the types that servers mostly send to file extensions. For these types,
// the table of the operating system has several extensions, or none.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/json": ".json",
	"application/octet-stream": ".bin",
}

// extensionOf returns the extension for a type, or ".bin" if none is known.
func extensionOf(mimeType string) string {
	kind, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		return ".bin"
	}
	if extension, ok := extensions[kind]; ok {
		return extension
	}
	known, err := mime.ExtensionsByType(kind)
	if err != nil || len(known) == 0 {
		return ".bin"
	}
	return known[0]
}
