// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-psi/psi/mcp"
)

// Binary data is saved in new files, whose names contain nothing that the server chose.
func TestFiles(t *testing.T) {
	isolate(t)
	mux := newServer()
	addAsker(mux)
	mux.Resource("test://picture", mcp.ResourceFunc(func(context.Context, struct{}) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n"), nil },
		&mcp.Resource{MIMEType: "image/png"}))
	url, dir := serve(t, mux), t.TempDir()
	below := dir + string(filepath.Separator)
	want := "three files\n" + below + "psi-image-1.png: 3 bytes of image/png\n" + below + "psi-audio-1.wav: 3 bytes of audio/wav\n" +
		below + "psi-resource-1.bin: 4 bytes of x/y; \\x1b[2J\nlink to test://menu\n"
	if got := psi(t, "", "call", url, "media", "-dir", dir); got.out != want {
		t.Errorf("wrote %q and %q, want %q", got.out, got.errOut, want)
	}
	if got := psi(t, "", "read", "-dir", dir, url, "test://picture"); got.out != below+"psi-resource-1.png: 8 bytes of image/png\n" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	if got := psi(t, "", "call", url, "media", "-dir", dir); !strings.Contains(got.out, below+"psi-image-2.png: ") {
		t.Errorf("the second time, wrote %q and %q", got.out, got.errOut)
	}
	data, err := os.ReadFile(dir + "/psi-image-1.png")
	if err != nil || string(data) != "png" {
		t.Errorf("the image is %q, %v", data, err)
	}
	for _, none := range []string{dir + "/none", dir + "/psi-image-1.png"} { // the tool is not called
		if got := psi(t, "", "call", url, "media", "-dir", none); got.code != exitUsage || got.out != "" {
			t.Errorf("without a directory: exit code %d, wrote %q", got.code, got.out)
		}
	}
}

// hostile is text that could rewrite the screen of a terminal.
const hostile = "a\x1b[2Jb\u202ec\u009bd\re\x07"

// newHostile returns a server with hostile text everywhere.
func newHostile() *mcp.Mux {
	mux := mcp.NewMux("hostile"+hostile, "v1.0.0", &mcp.MuxOptions{Instructions: hostile})
	mux.Tool("tool", mcp.ToolFunc(func(ctx context.Context, in struct {
		A string `json:"a,omitempty" jsonschema_description:"x"`
	}) (*mcp.CallToolResult, error) {
		mcp.Progress(ctx, 1, 2, hostile)
		mcp.ClientLogger(ctx).Warn(hostile, "x", hostile)
		if in.A == "fail" {
			return nil, errors.New(hostile)
		}
		if in.A == "protocol" {
			return nil, mcp.Errorf(mcp.CodeInternalError, "%s", hostile)
		}
		type form struct {
			Name string `json:"name"`
		}
		if _, err := mcp.Elicit[form](ctx, "k", hostile+"\nIt wants"); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: mcp.Contents{
			mcp.Text(hostile),
			&mcp.ImageContent{Data: []byte("x"), MIMEType: hostile},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "x://" + hostile, Name: hostile, Description: hostile}},
			&mcp.UnknownContent{Type: "x", Raw: []byte(`{"type":"x","y":"\u009b\u202e"}`)},
		}}, nil
	}, &mcp.Tool{Description: hostile, Title: hostile}))
	mux.Prompt("prompt", mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return hostile, nil }, &mcp.Prompt{
		Description: hostile, Arguments: []*mcp.PromptArgument{{Name: hostile, Description: hostile}},
		Completers: map[string]mcp.Completer{hostile: func(context.Context, *mcp.CompleteParams) ([]string, error) { return []string{hostile}, nil }},
	}))
	mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return hostile, nil }, &mcp.Resource{Description: hostile, MIMEType: hostile}))
	return mux
}

// No text from a server reaches the terminal unescaped.
func TestHostileText(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	url := serve(t, newHostile())
	for _, args := range []string{
		"list", "list -json", "list tool prompt test://doc", "list -json tool", "list -v",
		"call tool", "call -json tool", "call -v -log debug tool", "call tool a=fail", "call tool a=protocol", "call -json tool a=fail",
		"read test://doc", "read -json test://doc", "prompt prompt", "prompt -json prompt", "complete prompt " + hostile + "=",
	} {
		words := strings.Split(args, " ")
		i := 1
		for i < len(words) && strings.HasPrefix(words[i], "-") {
			if i++; words[i-1] == "-log" {
				i++
			}
		}
		words = slices.Insert(words, i, url)
		for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
			screen := &screen{}
			var out bytes.Buffer
			run(t.Context(), append([]string{words[0], "-protocol", protocol}, words[1:]...), strings.NewReader("x\n"), &out, screen)
			for _, text := range []string{out.String(), strings.ReplaceAll(screen.String(), "\r", "")} {
				if i := strings.IndexFunc(text, isUnsafe); i >= 0 {
					t.Errorf("%s: wrote %q", args, text[max(i-40, 0):])
				}
			}
			if !strings.Contains(out.String()+screen.String(), "b\\u202ec") {
				t.Errorf("%s: wrote nothing of the server: %q and %q", args, &out, screen)
			}
		}
	}
}

func isUnsafe(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}

// A screen is a buffer that looks like a terminal.
type screen struct{ bytes.Buffer }

func (s *screen) Stat() (os.FileInfo, error) { return device{}, nil }

// A device is the file information of a terminal.
type device struct{}

func (device) Name() string       { return "terminal" }
func (device) Size() int64        { return 0 }
func (device) Mode() fs.FileMode  { return fs.ModeDevice | fs.ModeCharDevice }
func (device) ModTime() time.Time { return time.Time{} }
func (device) IsDir() bool        { return false }
func (device) Sys() any           { return nil }

// A server that presets consent does not get it from an empty line.
func TestConsentIsTyped(t *testing.T) {
	schema := `{"properties":{"agreed":{"type":"boolean","default":true},"size":{"type":"string","default":"l"}}}`
	for answers, want := range map[string]string{"\n\nno\n\n": `{"agreed":false}`, "yes\n\n": `{"agreed":true}`} {
		term := newTerminal(strings.NewReader(answers), io.Discard)
		res, err := term.elicit(t.Context(), nil, &mcp.ElicitParams{Message: "Really?", RequestedSchema: []byte(schema)})
		if err != nil || string(res.Content) != want {
			t.Errorf("%q: got %s, %v; want %s", answers, res.Content, err, want)
		}
	}
}

// Progress is shown as a bar on a terminal, and not at all elsewhere.
func TestProgress(t *testing.T) {
	isolate(t)
	url := serve(t, newServer())
	words := []string{"call", url, "report", "title=Tides", "pages=3"}
	if got := psi(t, "", words...); got.errOut != "" {
		t.Errorf("without a terminal, wrote %q", got.errOut)
	}
	s := &screen{}
	var out bytes.Buffer
	run(t.Context(), words, strings.NewReader(""), &out, s)
	if want := "\r[########................] 1/3 page\r[################........] 2/3 page\r[########################] 3/3 page\n"; s.String() != want || out.String() != "Tides, 3 pages\n" {
		t.Errorf("wrote %q and %q, want %q", s, &out, want)
	}
}

// With -log, all log messages of a tool at or above the level are shown, however soon the
// tool ends.
func TestLogMessages(t *testing.T) {
	isolate(t)
	mux := mcp.NewMux("m", "v1", nil)
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for n := range 3 {
			mcp.ClientLogger(ctx).Debug("detail")
			mcp.ClientLogger(ctx).Info(fmt.Sprint("message ", n))
		}
		return "done", nil
	}, nil))
	url := serve(t, mux)
	for range 20 {
		for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
			got := psi(t, "", "call", "-protocol", protocol, "-log", "info", url, "talk")
			want := `info: {"msg":"message 0"}` + "\n" + `info: {"msg":"message 1"}` + "\n" + `info: {"msg":"message 2"}` + "\n"
			if got.errOut != want || got.out != "done\n" {
				t.Fatalf("%s: wrote %q and %q, want %q", protocol, got.errOut, got.out, want)
			}
		}
	}
}

// With -v, the messages on the wire are shown, without secrets.
func TestWire(t *testing.T) {
	isolate(t)
	url := serve(t, newServer())
	got := psi(t, "", "call", "-v", url, "report", "title=Tides", `token=secret`)
	if got.code != exitUsage {
		t.Errorf("exit code %d", got.code)
	}
	for _, want := range []string{"--> 1 server/discover {", "<-- 2 tools/list {"} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("wrote %q, want %q", got.errOut, want)
		}
	}
	got = psi(t, "", "prompt", "-v", url, "explain", "topic=tides", "token=hunter2")
	if !strings.Contains(got.errOut, "prompts/get") || strings.Contains(got.errOut, "hunter2") {
		t.Errorf("wrote %q", got.errOut)
	}
}
