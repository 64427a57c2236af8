// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// writeConfig writes a configuration file with a server at a URL and one started by a
// command.
func writeConfig(t *testing.T, url string) (path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{
		// one elsewhere, and one here
		"servers": {
			"far off": {"url": %q, "excludeTools": ["pay"]},
			"near": {"command": %q, "env": {%q: "${input:yes}"}, "includeTools": ["add"]},
			"gone": {"url": "http://127.0.0.1:1/mcp"},
			"off": {"command": "/no/such/program", "disabled": true},
		},
		"inputs": [{"id": "yes", "type": "pickString", "description": "Serve?", "options": ["yes", "no"], "default": "no"}],
	}`, url, self, isServer)
	path = t.TempDir() + "/servers.json"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server name is looked up in the file given by -config, or else in the configuration
// files of the user's hosts.
func TestNames(t *testing.T) {
	home := isolate(t)
	path := writeConfig(t, serve(t, newServer()))
	if got := psi(t, "", "call", "-config", path, "far off", "add", "a=2", "b=3"); got.out != "{\"sum\":5}\n" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	got := psi(t, "yes\n", "call", "near", "add", "a=2", "b=3", "-config", path)
	if want := "Serve?\n  1  yes\n  2  no\n> "; got.out != "{\"sum\":5}\n" || !strings.HasPrefix(got.errOut, want) {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	if got := psi(t, "1\n", "call", "near", "add", "a=2", "b=3", "-config", path); got.out != "{\"sum\":5}\n" {
		t.Errorf("the number of an option: wrote %q and %q", got.out, got.errOut)
	}
	if got := psi(t, "3\n", "call", "near", "add", "a=2", "b=3", "-config", path); got.code != exitUsage || !strings.Contains(got.errOut, "want one of yes, no") {
		t.Errorf("no option: exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "perhaps\n", "list", "-config", path, "near"); got.code != exitUsage || !strings.Contains(got.errOut, `server "near": env.PSI_TEST_SERVER: ${input:yes}: want one of yes, no`) {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "", "servers"); got.code != exitOK || got.out != "" || got.errOut != "psi: there are no servers; see -config\n" {
		t.Errorf("without files: exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range []string{"/.cursor", "/.lmstudio"} {
		if err := os.Mkdir(home+dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(home+dir+"/mcp.json", text, 0o600); err != nil {
			t.Fatal(err)
		}
		got := psi(t, "", "call", "far off", "add", "a=2", "b=3")
		if wants := []int{exitOK, exitUsage}; got.code != wants[i] { // the second time, it is ambiguous
			t.Errorf("exit code %d, want %d, wrote %q and %q", got.code, wants[i], got.out, got.errOut)
		}
	}
	if got := psi(t, "", "list", "nea"); !strings.Contains(got.errOut, `did you mean "near"?`) {
		t.Errorf("wrote %q", got.errOut)
	}
	if got := psi(t, "", "servers"); strings.Count(got.out, "near") != 2 || !strings.Contains(got.out, "disabled") || got.errOut != "" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	if err := os.WriteFile(home+"/.cursor/mcp.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := psi(t, "", "servers"); got.code != exitOK || strings.Count(got.out, "near") != 1 || !strings.Contains(got.errOut, "host=Cursor") {
		t.Errorf("with a file that is no JSON: exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
}

// Servers that Claude Code stores for a project are known in its directory. Files of hosts
// without servers are no reason for a warning.
func TestFindingR10ServersOfProjects(t *testing.T) {
	home := isolate(t)
	project := home + "/project"
	if err := errors.Join(os.Mkdir(project, 0o700), os.Mkdir(home+"/.gemini", 0o700)); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"numStartups": 3, "projects": {%q: {"mcpServers": {"here": {"url": %q}}}}}`, project, serve(t, newServer()))
	for path, text := range map[string]string{"/.claude.json": text, "/.gemini/settings.json": `{"theme": "dark"}`} {
		if err := os.WriteFile(home+path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := psi(t, "", "servers"); got.out != "" || got.errOut != "psi: there are no servers; see -config\n" {
		t.Errorf("elsewhere: wrote %q and %q", got.out, got.errOut)
	}
	t.Chdir(project)
	if got := psi(t, "", "servers"); !strings.HasPrefix(got.out, "here  http  ") || got.errOut != "" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	if got := psi(t, "", "call", "here", "add", "a=2", "b=3"); got.out != "{\"sum\":5}\n" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
}

// startServing runs a serving subcommand and returns the URL that it serves.
func startServing(t *testing.T, subcommand string, args ...string) (url string) {
	t.Helper()
	url, _ = startServingLogged(t, subcommand, args...)
	return url
}

// startServingLogged is like startServing, and also returns what was written before.
func startServingLogged(t *testing.T, subcommand string, args ...string) (url, logged string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	said := make(chan string, 100)
	ended := make(chan int, 1)
	in, feed := io.Pipe()
	go func() {
		ended <- run(ctx, append([]string{subcommand, "-http", "127.0.0.1:0"}, args...), in, io.Discard, lines(said))
	}()
	go io.WriteString(feed, "yes\n") // answers the prompt of the file, if any
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("psi %s ended with %d", subcommand, code)
		}
	})
	for {
		select {
		case line := <-said:
			if _, url, ok := strings.Cut(strings.TrimSpace(line), "serving at "); ok {
				return url, logged
			}
			logged += line
		case code := <-ended:
			ended <- exitOK // for the cleanup
			t.Fatalf("psi %s ended with %d, having written %s", subcommand, code, logged)
		}
	}
}

// lines sends each write on the channel, or drops it if the channel is full.
type lines chan<- string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// A gateway offers the servers of a file to clients of both eras, with prefixes and without
// hidden items, and forwards the servers' questions.
func TestGateway(t *testing.T) {
	isolate(t)
	mux := newServer()
	addAsker(mux)
	path := writeConfig(t, serve(t, mux))
	url := startServing(t, "gateway", "-hide", "far_off_m*", path)
	for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		got := psi(t, "", "list", "-protocol", protocol, url)
		var names []string
		for line := range strings.Lines(got.out) {
			if fields := strings.Fields(line); fields[0] == "tool" {
				names = append(names, fields[1])
			}
		}
		slices.Sort(names)
		if want := []string{"far_off_add", "far_off_fail", "far_off_lure", "far_off_order", "far_off_report", "near_add"}; !slices.Equal(names, want) {
			t.Errorf("the tools are %q, want %q; wrote %q", names, want, got.errOut)
		}
		if got := psi(t, "", "call", "-protocol", protocol, url, "near_add", "a=2", "b=3"); got.out != "{\"sum\":5}\n" {
			t.Errorf("wrote %q and %q", got.out, got.errOut)
		}
		if got := psi(t, "large\ny\n\n\n", "call", "-protocol", protocol, url, "far_off_order"); got.code != exitOK || !strings.Contains(got.out, `"size":"large"`) {
			t.Errorf("wrote %q and %q", got.out, got.errOut)
		}
		if got := psi(t, "", "call", "-protocol", protocol, url, "far_off_media"); got.code != exitUsage {
			t.Errorf("a hidden tool: exit code %d", got.code)
		}
	}
}

// A gateway compares the headers of a call with its arguments, as the server itself does.
func TestFindingX4GatewayComparesHeaders(t *testing.T) {
	isolate(t)
	mux := mcp.NewMux("kitchen", "v1.0.0", nil)
	mux.Tool("cook", mcp.WithDescription(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult("cooked " + string(req.Arguments())), nil
	}), &mcp.Tool{InputSchema: []byte(`{"type":"object","properties":{"dish":{"type":"string","x-mcp-header":"Dish"}}}`)}))
	at := serve(t, mux)
	for name, url := range map[string]string{
		"cook": startServing(t, "gateway", at), "far_off_cook": startServing(t, "gateway", writeConfig(t, at), "far off"),
	} {
		for dish, cooks := range map[string]bool{"soup": true, "bread": false, "": false} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"dish":"soup"},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, name, mcp.LatestVersion)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": mcp.LatestVersion,
				"Mcp-Method": mcp.MethodCallTool, "Mcp-Name": name, "Mcp-Param-Dish": dish,
			} {
				if value != "" {
					req.Header.Set(key, value)
				}
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if got := string(raw); err != nil || strings.Contains(got, "cooked") != cooks || strings.Contains(got, "-32020") == cooks {
				t.Errorf("%s with the header %q: got %s", name, dish, got)
			}
		}
	}
}

// The patterns of -hide match URIs, in which a slash is an ordinary character.
func TestGatewayHidesResources(t *testing.T) {
	isolate(t)
	for pattern, isHidden := range map[string]bool{"*menu*": true, "test:*": true, "test:/?menu": true, "test:[/][/]menu": true, "*recipes*": false} {
		url := startServing(t, "gateway", "-hide", pattern, serve(t, newServer()))
		list := psi(t, "", "list", url)
		read := psi(t, "", "read", url, "test://menu")
		if strings.Contains(list.out, "test://menu") == isHidden || read.code == exitOK == isHidden {
			t.Errorf("-hide %s: the list is\n%s\nreading says %q, %q", pattern, list.out, read.out, read.errOut)
		}
	}
}

// The page about a server shows what is registered on it.
func TestInspect(t *testing.T) {
	isolate(t)
	page := startServing(t, "inspect", serve(t, newServer()))
	res, err := http.Get(page + "?view=registered")
	if err != nil {
		t.Fatal(err)
	}
	if text := readBody(t, res); !strings.Contains(text, "Write a report.") {
		t.Errorf("%d bytes", len(text))
	}
}

// The page opens the apps of tools at a second host, which reads them from the server.
func TestInspectApps(t *testing.T) {
	isolate(t)
	mux := newServer()
	seats := func(context.Context, struct{}) (string, error) { return "12A", nil }
	mux.Resource("ui://seats", apps.Page(fstest.MapFS{"seats.html": {Data: []byte("<!doctype html><h1>Seats</h1>")}}, "seats.html", nil))
	mux.Tool("seat_map", mcp.ToolFunc(seats, apps.Tool(&mcp.Tool{Description: "Shows seats."}, "ui://seats")))
	url := serve(t, mux)
	for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		page := startServing(t, "inspect", "-protocol", protocol, url)
		res, err := http.PostForm(page, map[string][]string{"action": {"app"}, "name": {"seat_map"}})
		if err != nil {
			t.Fatal(err)
		}
		if shown := readBody(t, res); res.Request.URL.Path != "/" || !strings.Contains(shown, `value="seat_map"`) {
			t.Errorf("%s: %s has\n%s", protocol, res.Request.URL, shown)
		}
		if res, err = http.PostForm("http://"+res.Request.URL.Host+"/show", map[string][]string{"tool": {"seat_map"}}); err != nil {
			t.Fatal(err)
		}
		if shown := readBody(t, res); !strings.Contains(shown, "Seats") {
			t.Errorf("%s: the app is\n%s", protocol, shown)
		}
	}
}

func readBody(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("status %d, %v", res.StatusCode, err)
	}
	return string(text)
}

// If a token is set, callers of a gateway must send it.
func TestGatewayToken(t *testing.T) {
	isolate(t)
	const token = "a-token-of-the-gateway"
	t.Setenv(tokenVariable, token)
	url := startServing(t, "gateway", serve(t, newServer()))
	if got := psi(t, "", "list", url); got.code == exitOK {
		t.Errorf("without the token, wrote %q", got.out)
	}
	if got := psi(t, "", "call", url, "add", "a=2", "b=3", "-header", "Authorization: Bearer "+token); got.out != "{\"sum\":5}\n" {
		t.Errorf("with the token, wrote %q and %q", got.out, got.errOut)
	}
	t.Setenv(tokenVariable, "short")
	if got := psi(t, "", "gateway", "x.json"); got.code != exitUsage || strings.Contains(got.errOut, "short\"") {
		t.Errorf("a short token: exit code %d, wrote %q", got.code, got.errOut)
	}
}

// A gateway on standard input and output serves a single server unchanged.
func TestGatewayStdio(t *testing.T) {
	isolate(t)
	url := serve(t, newServer())
	fromGateway, out := io.Pipe()
	in, toGateway := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), []string{"gateway", "-stdio", url}, in, out, io.Discard) }()
	conn := mcptest.Dial(t, streamTransport{fromGateway, toGateway}, nil)
	got, err := mcp.Call[sum](t.Context(), conn, "add", map[string]int{"a": 2, "b": 3})
	if err != nil || got.Sum != 5 {
		t.Errorf("got %v, %v", got, err)
	}
	_ = conn.Close()
	_ = toGateway.Close()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// If a gateway serves on standard input, it cannot ask the user for the inputs of a file.
func TestGatewayInputs(t *testing.T) {
	isolate(t)
	path := writeConfig(t, "http://127.0.0.1:1/mcp")
	if got := psi(t, "yes\n", "gateway", "-stdio", path, "near"); got.code != exitUsage || !strings.Contains(got.errOut, "the user cannot be asked for it") {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
}

// A server that cannot be used is left out with a warning that names it. If it is named on the
// command line, or no other server is left, nothing is served.
func TestFindingR4GatewayWithBadServers(t *testing.T) {
	isolate(t)
	path := t.TempDir() + "/servers.json"
	text := fmt.Sprintf(`{"mcpServers": {
		"good": {"url": %q},
		"variable": {"url": "${NONE_SUCH}"},
		"type": {"type": "ws", "url": "wss://example.com"},
		"empty": {},
		"number": {"command": "x", "args": [1]},
		"envfile": {"command": "x", "envFile": "/no/such/file"},
		"good_twin": {"command": "x"},
		"%s": {"command": "x"},
		"scalar": 1
	}}`, serve(t, newServer()), strings.Repeat("long", 16))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	url, warned := startServingLogged(t, "gateway", path)
	if got := psi(t, "", "call", url, "good_add", "a=2", "b=3"); got.out != "{\"sum\":5}\n" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
	for _, want := range []string{
		`server "variable": url: ${NONE_SUCH}`, `server "type": type: "ws"`, `server "empty": want a command`, `server "number": args: `,
		`server "envfile": envFile: `, `server "scalar": `, `longer than 63 characters`,
		`tools of "good_twin" would begin with "good_twin_" and those of "good" with "good_"`,
	} {
		if !strings.Contains(warned, want) {
			t.Errorf("no warning has %s: %s", want, warned)
		}
	}
	for _, name := range []string{"variable", "type", "empty", "number", "envfile", "scalar"} {
		if got := psi(t, "", "gateway", path, "good", name); got.code != exitUsage || !strings.Contains(got.errOut, `server "`+name+`"`) {
			t.Errorf("%s: exit code %d, wrote %q", name, got.code, got.errOut)
		}
	}
}

// Servers are rejected, before any of them is started, if it would be ambiguous to which a tool
// belongs. The error says why.
func TestFindingR18GatewayPrefixes(t *testing.T) {
	isolate(t)
	path := t.TempDir() + "/servers.json"
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"github": {"command": "x"}, "github_enterprise": {"command": "y"}, "a b": {"command": "x"}, "a-c": {"command": "x"}, "a_b": {"command": "x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{
		"github github_enterprise": `tools of "github_enterprise" would begin with "github_enterprise_" and those of "github" with "github_", so that a name could belong to both: rename one of the servers`,
		"github_enterprise github": `tools of "github" would begin with "github_" and those of "github_enterprise" with "github_enterprise_"`,
		"a b,a-c,a_b":              `tools of "a_b" would begin with "a_b_" and those of "a b" with "a_b_"`,
	} {
		words := strings.Split(names, ",")
		if len(words) == 1 {
			words = strings.Fields(names)
		}
		if got := psi(t, "", append([]string{"gateway", path}, words...)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q", names, got.code, got.errOut)
		}
	}
}

// A file without a server that can be used is rejected.
func TestGatewayWithoutServers(t *testing.T) {
	isolate(t)
	path := t.TempDir() + "/servers.json"
	for text, want := range map[string]string{
		`{"a": {"command": "x", "disabled": true}}`:             "no server that is enabled",
		`{"a": {"url": "${NONE}"}}`:                             `no server of the file can be used`,
		`{"` + strings.Repeat("a", 64) + `": {"command": "x"}}`: "longer than 63 characters",
	} {
		if err := os.WriteFile(path, []byte(`{"mcpServers": `+text+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := psi(t, "", "gateway", path); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q", text, got.code, got.errOut)
		}
	}
	if got := psi(t, "", "gateway", path, "b"); got.code != exitUsage || !strings.Contains(got.errOut, `there is no server "b"`) {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
}

// A recording is not overwritten, and a replay detects a server that answers differently.
func TestRecordings(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	url := serve(t, newServer())
	if got := psi(t, "", "record", "r.jsonl", "call", url, "add", "a=2", "b=3"); got.code != exitOK {
		t.Fatalf("exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "", "replay", "r.jsonl", "call", "add", "a=2", "b=4"); got.code != exitFailed {
		t.Errorf("another call: exit code %d, wrote %q", got.code, got.out)
	}
	other := newServer()
	other.RemoveTool("add")
	other.Tool("add", mcp.ToolFunc(func(context.Context, struct{ A, B int }) (sum, error) { return sum{6}, nil }, nil))
	if got := psi(t, "", "replay", "r.jsonl", mcptest.Serve(t, http.Handler(mcphttp.NewHandler(other, nil)))); got.code != exitFailed || !strings.Contains(got.errOut, "line ") {
		t.Errorf("another server: exit code %d, wrote %q", got.code, got.errOut)
	}
	for args, want := range map[string]string{
		"record r.jsonl call " + url + " add a=2 b=3": "exists",
		"record x.jsonl version":                      "version talks to no server",
		"record x.jsonl":                              "want a file and a subcommand",
		"replay none.jsonl list":                      "none.jsonl",
		"replay r.jsonl":                              "want a file, and a subcommand or a server",
		"replay r.jsonl " + url + " x":                "want one server",
	} {
		if got := psi(t, "", strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q", args, got.code, got.errOut)
		}
	}
}

// A recording without messages leaves no file behind, because the next attempt would not
// overwrite it.
func TestEmptyRecordings(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	if got := psi(t, "", "record", "r.jsonl", "list"); got.code != exitUsage {
		t.Fatalf("exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "", "record", "r.jsonl", "list", serve(t, newServer())); got.code != exitOK {
		t.Fatalf("exit code %d, wrote %q", got.code, got.errOut)
	}
}

// streamTransport is a transport to a server over a reader and a writer.
type streamTransport struct {
	in  io.ReadCloser
	out io.WriteCloser
}

func (s streamTransport) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	stream := mcpstdio.NewStream(s.in, s.out, &mcpstdio.LineOptions{Close: func() error { return errors.Join(s.out.Close(), s.in.Close()) }})
	return transport.NewConn(stream, receive), nil
}

// All callers of a gateway are one user, with a token or without: a call that the user has
// given up does not keep a server whose questions name no call from asking about the next.
func TestFindingZ3OneUser(t *testing.T) {
	isolate(t)
	slow, given := make(chan struct{}, 1), make(chan struct{})
	mux := mcp.NewMux("old", "v1", nil)
	mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		slow <- struct{}{}
		<-ctx.Done()
		close(given)
		return "", ctx.Err()
	}, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		sure, err := mcp.Elicit[struct {
			Sure bool `json:"sure"`
		}](ctx, "sure", "Sure?")
		return fmt.Sprint(sure.Sure), err
	}, nil))
	old := mcptest.Serve(t, http.Handler(mcphttp.NewSSEHandler(mux, nil)))
	accept := &mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(map[string]bool{"sure": true}), nil
	}}
	c, err := mcp.NewClient("c", "v1", accept).Connect(t.Context(), mcphttp.NewTransport(startServing(t, "gateway", old), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-slow
		giveUp()
	}()
	if _, err := mcp.Call[string](ctx, c, "slow", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-given
	if got, err := mcp.Call[string](t.Context(), c, "ask", nil); got != "true" {
		t.Errorf("after a call that was given up: %q, %v", got, err)
	}
}
