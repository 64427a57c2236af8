// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Tests for public advisories are named after them and listed in
// docs/evidence/advisories.md.

// choosing returns a server whose results show which of its two tools ran and with which
// arguments.
func choosing() *mcp.Mux {
	type in struct {
		Task  string `json:"task,omitempty"`
		Force bool   `json:"force,omitempty"`
	}
	run := func(name string) mcp.Handler {
		return mcp.ToolFunc(func(_ context.Context, in in) (string, error) {
			return fmt.Sprintf("%s ran %q, %t", name, in.Task, in.Force), nil
		}, nil)
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("safe", run("safe"))
	mux.Tool("danger", run("danger"))
	return mux
}

// runs sends a message in each era. It fails unless the server rejects the message or runs
// the safe tool without force, as a reader that matches member names exactly would.
func runs(t *testing.T, message string) {
	t.Helper()
	for _, era := range eras {
		p := newPeer(t, choosing(), era)
		p.send(strings.ReplaceAll(message, "META", era.meta))
		got := p.read()
		if text := string(got.Result); strings.Contains(text, " ran ") && !strings.Contains(text, `safe ran \"\", false`) {
			t.Errorf("%s, %s: %s", era.name, message, text)
		}
		p.send(era.request("99", mcp.MethodCallTool, `"name":"safe"`))
		if got := p.read(); got.ID != mcp.IntID(99) || got.Error != nil || !strings.Contains(string(got.Result), "safe ran") {
			t.Errorf("%s, after %s: %s, %v", era.name, message, got.Result, got.Error)
		}
	}
}

// Member names match exactly. The Go SDK matched them regardless of case and Unicode case
// folding, so an inspecting proxy could read a different member than the server did.
func TestAdvisoryCVE_2026_27896(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","Params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe",META},"Params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe",META},"param` + "\u017f" + `":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","Name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{},"Arguments":{"task":"forged"},META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","argument` + "\u017f" + `":{"force":true},META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"Force":true},META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"ta` + "\u017f\u212a" + `":"forged"},META}}`,
	} {
		runs(t, message)
	}
}

// A name with a NUL at its end is a different name, and duplicate names are rejected. The
// next decoder of the Go SDK ignored the NUL and used the last of two equal names.
func TestAdvisoryGHSA_q382_vc8q_7jhj(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method\u0000":"tools/call","params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe",META},"params\u0000":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name\u0000\u0000":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","n\u0061me":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe",META},"params":{"name":"danger",META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"force":false,"force\u0000":true},META}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"force":false,"force":true},META}}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/call","params":{"name":"danger",META}}`,
	} {
		runs(t, message)
	}
}

// Requests that fail validation are answered, and the server keeps running. In the Python
// SDK, one such request stopped the server for all clients.
func TestAdvisoryCVE_2025_53366(t *testing.T) {
	methods := []string{
		mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodCallTool, mcp.MethodListPrompts, mcp.MethodGetPrompt, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodComplete, "initialize", "ping", "logging/setLevel",
		"resources/subscribe", "notifications/cancelled", "notifications/progress", "notifications/initialized", "unknown/method",
	}
	values := []string{
		`null`, `7`, `"x"`, `[]`, `[null]`, `{}`, `{"_meta":null}`, `{"_meta":7}`, `{"_meta":{"progressToken":{}}}`, `{"name":null,"uri":null,"cursor":7}`,
		`{"name":7,"uri":7,"level":7,"requestId":{}}`, `{"name":"safe","arguments":[]}`, `{"name":"safe","arguments":{"task":7}}`, `{"ref":7,"argument":7}`,
		`{"name":"safe","inputResponses":7,"requestState":7,META}`, `{"name":"safe","requestState":"forged",META}`, `{"uri":"%zz",META}`,
		`{"protocolVersion":7,"capabilities":7,"clientInfo":7}`,
	}
	for _, era := range eras {
		p := newPeer(t, choosing(), era)
		for i, method := range methods {
			for j, value := range values {
				value = strings.ReplaceAll(value, "META", era.meta)
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":%q,"params":%s}`, i, j, method, value))
				if got := p.read().ID.String(); got != fmt.Sprintf(`"%d-%d"`, i, j) {
					t.Fatalf("%s: %s with %s was answered with the id %s", era.name, method, value, got)
				}
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, value))
			}
		}
		p.send(era.request("99", mcp.MethodCallTool, `"name":"safe"`))
		if got := p.read(); got.ID != mcp.IntID(99) || got.Error != nil {
			t.Errorf("%s: after all that: id %s, %v", era.name, got.ID, got.Error)
		}
	}
}

// A completion request without a valid reference is rejected. It crashed GitHub's server.
func TestAdvisoryCVE_2026_47427(t *testing.T) {
	mux := choosing()
	mux.Prompt("essay", mcp.PromptFunc(func(context.Context, struct {
		Topic string `json:"topic"`
	}) (string, error) {
		return "", nil
	}, &mcp.Prompt{Completers: map[string]mcp.Completer{"topic": mcp.CompleteFrom("Go")}}))
	for _, era := range eras {
		p := newPeer(t, mux, era)
		for i, members := range []string{
			``, `"ref":null`, `"ref":{}`, `"ref":{"type":null}`, `"ref":{"type":"ref/prompt"}`, `"ref":{"type":"ref/resource"}`, `"ref":{"type":"ref/none","name":"x"}`,
			`"ref":{"type":"ref/prompt","name":"none"}`, `"ref":{"type":"ref/prompt","name":"none"},"argument":null`, `"argument":{"name":"topic","value":"y"}`,
			`"ref":{"type":"ref/resource","uri":"x://{"},"argument":{}`, `"ref":{"type":"ref/resource","uri":null},"argument":{"name":"topic","value":""}`,
		} {
			p.send(era.request(fmt.Sprint(i+10), mcp.MethodComplete, members))
			if got := p.read(); got.ID != mcp.IntID(int64(i+10)) || got.Error == nil || got.Error.Code != mcp.CodeInvalidParams {
				t.Errorf("%s: %s: id %s, %v", era.name, members, got.ID, got.Error)
			}
		}
		p.send(era.request("99", mcp.MethodComplete, `"ref":{"type":"ref/prompt","name":"essay"},"argument":{"name":"topic","value":"G"}`))
		if got := p.read(); got.Error != nil || !strings.Contains(string(got.Result), `"Go"`) {
			t.Errorf("%s: a good one: %s, %v", era.name, got.Result, got.Error)
		}
	}
}

// Matching a long URI against a template is fast. The TypeScript SDK compiled URI templates
// to regular expressions that took almost forever.
func TestAdvisoryCVE_2026_0621(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, template := range []string{"a://x{/id*}", "b://x{?tags*}", "c://x{/id*}{?tags*}/end", "d://x{;p*}{#f*}z", "e://{+a}a{+b}a{+c}a{+d}b"} {
		mux.Resource(template, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, errors.New("matched") }))
	}
	for _, start := range []string{"a://x/", "a://x/a", "b://x?tags=", "c://x/", "c://x/a?tags=a", "d://x;p=a", "e://a"} {
		for _, part := range []string{"a", "a,", "/a", "&tags=a", ";p=a"} {
			uri := start + strings.Repeat(part, 4<<10/len(part)) + "\n!"
			if _, err := readURI(t, mux, uri); err == nil || mcp.CodeOf(err) == mcp.CodeInternalError {
				t.Errorf("%.40q: %v", uri, err)
			}
		}
	}
}

// aside creates a directory to serve and a sibling whose name has the same prefix.
func aside(t *testing.T) (served, beside string) {
	t.Helper()
	dir := t.TempDir()
	served, beside = filepath.Join(dir, "files"), filepath.Join(dir, "files_secret")
	for path, text := range map[string]string{served + "/a.txt": "public", beside + "/b.txt": "SECRET"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return served, beside
}

// nothingOf checks that none of the paths is served, and that the public file is.
func nothingOf(t *testing.T, served string, paths []string) {
	t.Helper()
	root, err := os.OpenRoot(served)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, h := range map[string]mcp.Handler{"FS": mcp.FileServerFS(os.DirFS(served), nil), "Root": mcp.FileServerRoot(root, nil)} {
		mux := serveFiles(h, filesTemplate)
		for _, path := range paths {
			if c, err := readURI(t, mux, "file:///docs/"+path); err == nil {
				t.Errorf("%s: %s is %q", name, path, c.Text)
			}
		}
		if c, err := readURI(t, mux, "file:///docs/a.txt"); err != nil || c.Text != "public" {
			t.Errorf("%s: a.txt: %v", name, err)
		}
		listed, _ := listPages(t, mux)
		for _, r := range listed {
			if c, err := readURI(t, mux, r.URI); err != nil || c.Text != "public" {
				t.Errorf("%s lists %s: %v", name, r.URI, err)
			}
		}
	}
}

// Symbolic links that lead out of the served directory are not followed. The reference file
// server followed them.
func TestAdvisoryCVE_2025_53109(t *testing.T) {
	served, beside := aside(t)
	for link, target := range map[string]string{
		"file.txt": filepath.Join(beside, "b.txt"), "dir": beside, "up": "..", "relative.txt": "../files_secret/b.txt", "twice": "dir", "etc": "/etc",
	} {
		if err := os.Symlink(target, filepath.Join(served, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	nothingOf(t, served, []string{"file.txt", "dir/b.txt", "dir", "up/files_secret/b.txt", "relative.txt", "twice/b.txt", "etc/passwd"})
}

// A sibling directory whose name begins with that of the served directory is not served.
// The reference file server served it.
func TestAdvisoryCVE_2025_53110(t *testing.T) {
	served, beside := aside(t)
	if _, err := fs.Stat(os.DirFS(beside), "b.txt"); err != nil {
		t.Fatal(err)
	}
	nothingOf(t, served, []string{
		"../files_secret/b.txt", "..%2Ffiles_secret%2Fb.txt", "%2e%2e/files_secret/b.txt", "_secret/b.txt", "../files/../files_secret/b.txt",
		filepath.ToSlash(filepath.Join(beside, "b.txt")), "/" + filepath.ToSlash(filepath.Join(beside, "b.txt")), "..\\files_secret\\b.txt",
	})
}

// T43 for clients: a panic in a client callback fails only its question or notification,
// and the connection stays usable.
func TestTrap43ClientCallbacksPanic(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("fine", says("fine"))
	for name, ask := range map[string]func(ctx context.Context) error{
		"elicit": func(ctx context.Context) error { _, err := mcp.Elicit[yes](ctx, "k", "?"); return err },
		"url":    func(ctx context.Context) error { return mcp.ElicitURL(ctx, "k", "?", "https://example.com") },
		"sample": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1})
			return err
		},
		"log":      func(ctx context.Context) error { mcp.ClientLogger(ctx).Error("said"); return nil },
		"progress": func(ctx context.Context) error { mcp.Progress(ctx, 1, 2, "made"); return nil },
	} {
		mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return name, ask(ctx) }, nil))
	}
	opts := &mcp.ClientOptions{
		LogLevel:  mcp.LoggingLevelDebug,
		Elicit:    func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { panic("elicit") },
		ElicitURL: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { panic("url") },
		Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			panic("sample")
		},
		Log:          func(context.Context, *mcp.Conn, *mcp.LoggingMessageParams) { panic("log") },
		Notification: func(context.Context, *mcp.Conn, *mcp.Request) { panic("changed") },
	}
	(&mcptest.Client{Options: *opts}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {})
		for name, fine := range map[string]bool{"elicit": false, "url": false, "sample": false, "log": true, "progress": true} {
			res, err := c.CallTool(ctx, tool(name, ""))
			if ok := err == nil && !res.IsError; ok != fine {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		heard := make(chan struct{}, 100)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {
			heard <- struct{}{}
			panic("change")
		})
		if err != nil {
			t.Fatal(err)
		}
		mux.Tool("new", says(""))
		<-heard
		mux.RemoveTool("new")
		s.Close()
		<-s.Done()
		if got, err := mcp.Call[string](t.Context(), c, "fine", nil); err != nil || got != "fine" {
			t.Errorf("after that: %q, %v", got, err)
		}
	})
}
