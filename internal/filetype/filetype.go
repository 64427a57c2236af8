// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package filetype

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode/utf8"
)

// Directory is the type of a directory in the shared MIME-info database (server/resources).
const Directory = "inode/directory"

const (
	plain  = "text/plain"
	binary = "application/octet-stream"
)

// SniffLength is the number of bytes that are used to guess a type.
const SniffLength = 512

// known types take precedence over the table of the operating system, which is missing on
// some machines and has unexpected types for source code.
var known = map[string]string{
	".c": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".h": "text/x-c",
	".conf": plain, ".css": "text/css", ".csv": "text/csv", ".diff": "text/x-diff",
	".gif": "image/gif", ".go": "text/x-go", ".gz": "application/gzip",
	".htm": "text/html", ".html": "text/html", ".ini": plain,
	".java": "text/x-java", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl",
	".jsx": "text/javascript", ".log": plain, ".md": "text/markdown",
	".mjs": "text/javascript", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
	".patch": "text/x-diff", ".pdf": "application/pdf", ".png": "image/png",
	".proto": "text/x-protobuf", ".py": "text/x-python", ".rb": "text/x-ruby",
	".rs": "text/x-rust", ".sh": "text/x-shellscript", ".sql": "application/sql",
	".svg": "image/svg+xml", ".tar": "application/x-tar", ".toml": "application/toml",
	".ts": "text/x-typescript", ".tsv": "text/tab-separated-values", ".tsx": "text/x-typescript",
	".txt": plain, ".wasm": "application/wasm", ".wav": "audio/wav",
	".webp": "image/webp", ".xml": "application/xml", ".yaml": "application/yaml",
	".yml": "application/yaml", ".zip": "application/zip",
}

// ByName returns the type for the extension of a name, or "" if it is unknown.
func ByName(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if kind, ok := known[ext]; ok {
		return kind
	}
	found, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return found
}

// signatures are the first bytes of files, for the types that clients can show.
var signatures = []struct{ head, kind string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF8", "image/gif"},
	{"%PDF-", "application/pdf"},
	{"PK\x03\x04", "application/zip"},
	{"\x1f\x8b", "application/gzip"},
	{"OggS", "application/ogg"},
	{"ID3", "audio/mpeg"},
	{"\x00asm", "application/wasm"},
}

// Of guesses the type of data.
func Of(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.head)) {
			return s.kind
		}
	}
	switch {
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	case isUTF8Text(data):
		return plain
	}
	return binary
}

// IsText reports whether data of the given type is sent as text.
func IsText(kind string, data []byte) bool { return !isBinaryType(kind) && isUTF8Text(data) }

func isUTF8Text(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// isBinaryType reports whether a type is never text, even if a file of the type happens to
// be UTF-8.
func isBinaryType(kind string) bool {
	if strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+json") {
		return false
	}
	switch family, _, _ := strings.Cut(kind, "/"); family {
	case "image", "audio", "video", "font":
		return true
	}
	switch kind {
	case binary, "application/pdf", "application/zip", "application/gzip", "application/x-tar", "application/wasm", "application/ogg":
		return true
	}
	return false
}

// WithoutCutRune removes an incomplete character from the end of data.
func WithoutCutRune(data []byte) []byte {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax); i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return data[:i]
			}
			break
		}
	}
	return data
}
