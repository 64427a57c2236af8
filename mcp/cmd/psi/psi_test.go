// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

var tests = []struct {
	name, args, in string
	out, errOut    string // the exact output, and a part of the error output
	code           int
}{
	{name: "text becomes what the tool expects", args: "call add a=2 b:=3", out: `{"sum":5}` + "\n"},
	{name: "an object", args: `call report {"title":"7"}`, out: "7, 0 pages\n"},
	{name: "text stays text", args: "call report title=7", out: "7, 0 pages\n"},
	{name: "as JSON", args: "call -json add a=2 b=3", out: `{"content":[{"text":"{\"sum\":5}","type":"text"}],"structuredContent":{"sum":5}}` + "\n"},
	{name: "a wrong type", args: `call add a=two b:="3"`, code: exitUsage,
		errOut: "psi: the tool \"add\" was not called: invalid arguments:\n  /a: expected integer, got string \"two\"\n  /b: expected integer, got string \"3\"\n"},
	{name: "text for a list", args: "call fail dishes=soup", code: exitUsage, errOut: "  /dishes: expected array, got string \"soup\"\nwrite dishes:='[…]': name:= is followed by JSON\n"},
	{name: "a missing argument", args: "call add a=2", code: exitUsage, errOut: "invalid arguments:\n  /b: expected integer, got nothing (the property is required)\n"},
	{name: "out of range", args: "call report title=7 pages=10", code: exitUsage, errOut: "invalid arguments:\n  /pages: expected number of at most 9, got number 10\n"},
	{name: "text that is too long", args: "call report title=12345678901234567890", code: exitUsage, errOut: "invalid arguments:\n  /title: expected string of at most 12 characters, got"},
	{name: "an unknown argument", args: "call add a=2 b=3 c=4", code: exitUsage, errOut: "/c: "},
	{name: "no JSON", args: "call add a:=x", code: exitUsage, errOut: `the argument "a" is not JSON`},
	{name: "no argument", args: "call add 2 3", code: exitUsage, errOut: `the argument "2" is neither name=text nor name:=json`},
	{name: "twice", args: "call add a=1 a=2", code: exitUsage, errOut: `the argument "a" is given twice`},
	{name: "a broken object", args: "call add {", code: exitUsage, errOut: "the arguments are not a JSON object"},
	{name: "no tool", args: "call", code: exitUsage, errOut: "which tool?\nusage: psi call [flags] SERVER TOOL [ARGUMENT ...]"},
	{name: "an unknown tool", args: "call ad", code: exitUsage, errOut: `psi: the server has no tool "ad"; did you mean "add"?`},
	{name: "a failing tool", args: "call fail", code: exitToolFailed, errOut: `the tool "fail" failed: out of flour`},
	{name: "a failing tool as JSON", args: "call -json fail", code: exitToolFailed, errOut: "out of flour",
		out: `{"content":[{"text":"out of flour","type":"text"}],"isError":true}` + "\n"},
	{
		name: "a form", args: "call order", in: "medium\n\n2\nperhaps\nno\n0\n3\ncapers, olives\n",
		out: `{"size":"large","amount":3,"extras":["capers","olives"],"agreed":false}` + "\n",
		errOut: "The server asks: What will it be?\n(An empty line leaves a field out, or to its default. ! declines.)\n" +
			"size: string, one of small, large, required: How large\n  1  small\n  2  large\n> expected one of the allowed values, got string \"medium\"; allowed: \"small\", \"large\"\n> (a value is needed)\n> agreed: ",
	},
	{name: "defaults", args: "call order", in: "small\ny\n\n\n", out: `{"size":"small","amount":1,"agreed":true}` + "\n", errOut: "amount: integer, at least 1, default 1\n"},
	{name: "declined", args: "call order", in: "!\n", code: exitToolFailed, errOut: "declined"},
	{name: "no answer", args: "call order", code: exitToolFailed, errOut: "cancelled"},
	{name: "consent", args: "call pay", in: "y\n", out: "paid\n", errOut: "The server asks: Please pay.\nIt wants you to open a page of pay.example.com:\n  https://pay.example.com/1\nDo you agree?"},
	{name: "a name that looks like another", args: "call lure", code: exitToolFailed, errOut: "a page of xn--y-7sb1c.example.com:\n  https://xn--y-7sb1c.example.com/1\n"},
	{name: "no consent", args: "call pay", in: "\n", code: exitToolFailed, errOut: "declined"},
	{name: "a resource", args: "read test://menu", out: "soup, bread\n"},
	{name: "a resource as JSON", args: "read test://menu -json", out: `{"contents":[{"text":"soup, bread\n","uri":"test://menu","mimeType":"text/plain"}]}` + "\n"},
	{name: "no such resource", args: "read test://none", code: exitFailed, errOut: `resource "test://none" not found`},
	{name: "two resources", args: "read test://menu test://menu", code: exitUsage, errOut: "want one URI"},
	{name: "a prompt", args: `prompt explain {"topic":"tides"}`, out: "user:\nExplain tides.\n"},
	{name: "a prompt of numbers", args: "prompt explain topic:=1", code: exitUsage, errOut: "the arguments of a prompt are strings"},
	{name: "no prompt", args: "prompt", code: exitUsage, errOut: "which prompt?"},
	{name: "nothing to complete", args: "complete explain", code: exitUsage, errOut: "want a prompt or a template, and an argument"},
	{name: "no name to complete", args: "complete explain topic", code: exitUsage, errOut: `the argument "topic" is not name=text`},
	{name: "an unknown name", args: "list nothing", code: exitUsage, errOut: `the server has nothing named "nothing"`},
}

// Each subcommand behaves the same, whichever revision is used.
func TestCommands(t *testing.T) {
	isolate(t)
	mux := newServer()
	addAsker(mux)
	url := serve(t, mux)
	for _, flags := range [][]string{nil, {"-protocol", mcp.LatestVersion}, {"-protocol", mcp.LegacyVersions()[0]}} {
		for _, test := range tests {
			t.Run(test.name+" "+strings.Join(flags, " "), func(t *testing.T) {
				words := strings.Split(test.args, " ")
				i := 1
				if i < len(words) && words[i] == "-json" {
					i++
				}
				args := append(append(append(words[:i:i], flags...), url), words[i:]...)
				if test.name == "a wrong type" { // the only argument with a quote
					args[len(args)-1] = `b:="3"`
				}
				got := psi(t, test.in, args...)
				if got.code != test.code || !sameOutput(got.out, test.out) || !strings.Contains(got.errOut, test.errOut) {
					t.Errorf("exit code %d, wrote %q and %q,\nwant %d, %q and %q", got.code, got.out, got.errOut, test.code, test.out, test.errOut)
				}
			})
		}
	}
}

// sameOutput reports whether two outputs are equal. For JSON objects, it compares only the
// members of want.
func sameOutput(got, want string) bool {
	var a, b map[string]any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return got == want
	}
	for name := range b {
		if !reflect.DeepEqual(a[name], b[name]) {
			return false
		}
	}
	return strings.HasSuffix(got, "}\n") && strings.Count(got, "\n") == 1
}

// A URL without a path that leads to nothing is most likely one without /mcp.
func TestURLWithoutPath(t *testing.T) {
	isolate(t)
	routes := http.NewServeMux()
	routes.Handle("/mcp", mcphttp.NewHandler(newServer(), nil))
	origin := mcptest.Serve(t, routes)
	for _, url := range []string{origin, origin + "/"} {
		if got := psi(t, "", "list", url); got.code == 0 || !strings.Contains(got.errOut, "did you mean "+origin+"/mcp?") {
			t.Errorf("%s: %+v", url, got)
		}
	}
	if got := psi(t, "", "list", origin+"/nowhere"); strings.Contains(got.errOut, "did you mean") {
		t.Errorf("%+v", got)
	}
}

// A URL may lack its scheme: plain HTTP is meant for addresses and this machine.
func TestURLWithoutScheme(t *testing.T) {
	isolate(t)
	for word, want := range map[string]string{
		"127.0.0.1:1/mcp": "http://127.0.0.1:1/mcp",
		"localhost:1":     "http://localhost:1",
		"[::1]:1/mcp":     "http://[::1]:1/mcp",
		"psi.invalid/mcp": "https://psi.invalid/mcp",
		"psi.invalid:843": "https://psi.invalid:843",
		"./server":        "",
		"a:b":             "",
		"servers/one":     "",
	} {
		got := psi(t, "", "list", word)
		if isUsage := got.code == exitUsage; isUsage != (want == "") || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q, want %q", word, got.code, got.errOut, want)
		}
	}
}

func TestNoSubcommand(t *testing.T) {
	if got := psi(t, ""); got.code != exitOK || !strings.Contains(got.out, "subcommands:") {
		t.Errorf("exit code %d, wrote %q", got.code, got.out)
	}
}

// Mistakes in the command line are usage errors.
func TestUsage(t *testing.T) {
	isolate(t)
	for args, want := range map[string]string{
		"--":                               "which subcommand?",
		"lst":                              `there is no subcommand "lst"; did you mean "list"?`,
		"list":                             "which server?",
		"list --":                          "no command follows the --",
		"version -- x":                     "version takes no command after --",
		"list -nonsense":                   "psi help list lists the flags",
		"list nowhere":                     `"nowhere" is neither a URL nor the name of a server in a configuration file; psi servers lists the names, and a command stands after --. A project file such as .mcp.json is read only with -config`,
		"list -config none.json x":         "config: open none.json",
		"list -log loud http://localhost/": `-log "loud" is not a level`,
		"list -header x http://localhost/": `-header "x" is not of the form "Name: value"`,
		"help nothing":                     `there is no subcommand "nothing"`,
		"completion tcsh":                  "want one of bash, fish, zsh",
		"gateway -http :8080 x.json":       `other machines can reach ":8080"`,
		"gateway -hide [ x.json":           `-hide "[" is not a pattern`,
		"gateway none.json":                "config: open none.json",
	} {
		t.Run(args, func(t *testing.T) {
			if got := psi(t, "", strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
				t.Errorf("exit code %d, wrote %q, want %q", got.code, got.errOut, want)
			}
		})
	}
}

// Errors other than mistakes in the command line have a different exit code.
func TestFailures(t *testing.T) {
	isolate(t)
	for _, args := range []string{"list -protocol 1999-01-01 http://localhost", "list ftp://x", "list -- /no/such/program"} {
		if got := psi(t, "", strings.Fields(args)...); got.code != exitFailed || !strings.HasPrefix(got.errOut, "psi: ") {
			t.Errorf("%s: exit code %d, wrote %q", args, got.code, got.errOut)
		}
	}
}

// An interrupt cancels the call on the server.
func TestInterrupt(t *testing.T) {
	isolate(t)
	ctx, interrupt := context.WithCancel(t.Context())
	cancelled := make(chan struct{})
	mux := mcp.NewMux("slow", "v1.0.0", nil)
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		interrupt()
		<-ctx.Done()
		close(cancelled)
		return "", ctx.Err()
	}, nil))
	var errOut strings.Builder
	if code := run(ctx, []string{"call", serve(t, mux), "wait"}, strings.NewReader(""), &errOut, &errOut); code != exitInterrupted {
		t.Errorf("exit code %d, wrote %q", code, &errOut)
	}
	<-cancelled
}

// The completion scripts are valid in their shells, if those are installed.
func TestCompletionScripts(t *testing.T) {
	for shell := range scripts {
		got := psi(t, "", "completion", shell)
		path, err := exec.LookPath(shell)
		if got.code != exitOK || err != nil {
			continue
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = strings.NewReader(got.out)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestSuggestions(t *testing.T) {
	home := isolate(t)
	if err := os.MkdirAll(home+"/.cursor", 0o700); err != nil {
		t.Fatal(err)
	}
	const servers = `{"mcpServers": {"kitchen": {"command": "x"}, "two words": {"command": "x"}}}`
	if err := os.WriteFile(home+"/.cursor/mcp.json", []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"cal":           "call\n",
		"call ":         "kitchen\n",
		"call -prot":    "-protocol\n",
		"help pro":      "prompt\n",
		"completion z":  "zsh\n",
		"call kitchen ": "",
		"nothing ":      "",
		"call x -- -":   "",
	} {
		if got := psi(t, "", append([]string{"__complete"}, strings.Split(args, " ")...)...); got.out != want {
			t.Errorf("%q: suggested %q, want %q", args, got.out, want)
		}
	}
}

// The page about psi names every subcommand, and the command lines that it shows can be
// parsed.
func TestPage(t *testing.T) {
	isolate(t)
	raw, err := os.ReadFile("../../../docs/psi.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, c := range commands() {
		if !c.hidden && !strings.Contains(text, "`"+c.name+"`") {
			t.Errorf("the page does not name %s", c.name)
		}
	}
	for line := range strings.Lines(text) {
		words := shellWords(strings.TrimSpace(line))
		if len(words) < 2 || words[0] != "psi" {
			continue
		}
		c, err := findCommand(words[1])
		if err == nil {
			_, err = newEnv(nil, nil, nil).parse(c, words[2:])
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// psi waits until a tool that runs in the background has completed.
func TestTask(t *testing.T) {
	isolate(t)
	mux := newServer()
	manager := tasks.New("kitchen", nil)
	t.Cleanup(func() { _ = manager.Shutdown(context.Background()) })
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("bake", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "bread", nil }, nil))
	url := serve(t, mux)
	for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		if got := psi(t, "", "call", "-protocol", protocol, url, "bake"); got.out != "bread\n" {
			t.Errorf("%s: wrote %q and %q", protocol, got.out, got.errOut)
		}
	}
}

// If an argument has several types, all of them are shown.
func TestListTypes(t *testing.T) {
	isolate(t)
	mux := mcp.NewMux("types", "v1", nil)
	mux.Tool("echo", mcp.ToolFunc(func(context.Context, struct {
		Note *string `json:"note" jsonschema:"nullable,description=What to say."`
	}) (string, error) {
		return "", nil
	}, nil))
	if got := psi(t, "", "list", serve(t, mux), "echo"); !strings.Contains(got.out, "note  string or null: What to say.\n") {
		t.Errorf("it lists %q", got.out)
	}
}

// A list that fails does not hide the others. A list whose method the server does not know is
// empty.
func TestFindingZ4OneListFails(t *testing.T) {
	isolate(t)
	failing := func(err error) string {
		mux := newServer()
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListResources {
					return nil, err
				}
				return next.ServeMCP(ctx, req)
			})
		})
		return serve(t, mux)
	}
	unknown := failing(mcp.NewMethodNotFoundError(mcp.MethodListResources))
	broken := failing(mcp.Errorf(mcp.CodeInternalError, "the database is down"))
	for _, test := range []struct {
		server string
		words  []string
		code   int
		stderr string
	}{
		{unknown, []string{"list"}, 0, ""},
		{broken, []string{"list"}, 1, "resources/list: "},
		{broken, []string{"list", "add"}, 1, "resources/list: "},
		{unknown, []string{"gen"}, 0, ""},
		{broken, []string{"gen"}, 0, "resources/list: "},
		{unknown, []string{"lint"}, 0, ""},
		{broken, []string{"lint"}, 0, "resources/list: "},
	} {
		words := slices.Insert(slices.Clone(test.words), 1, test.server)
		got := psi(t, "", words...)
		if got.code != test.code || !strings.Contains(got.errOut, test.stderr) || test.stderr == "" && got.errOut != "" {
			t.Errorf("psi %q: exit code %d and %q, want %d and %q", test.words, got.code, got.errOut, test.code, test.stderr)
		}
		if !strings.Contains(strings.ToLower(got.out), "add") && test.words[0] != "lint" {
			t.Errorf("psi %q shows %q, which lacks the tool add", test.words, got.out)
		}
	}
}

// A result whose output schema cannot be compiled is shown, with a warning.
func TestFindingR16ResultThatCannotBeValidated(t *testing.T) {
	isolate(t)
	mux := mcp.NewMux("kitchen", "v1.0.0", nil)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "weigh", InputSchema: []byte(`{"type":"object"}`),
					OutputSchema: []byte(`{"type":"object","properties":{"g":{"type":"integer","exclusiveMinimum":true}}}`)}}}, nil
			}
			return next.ServeMCP(ctx, req)
		})
	})
	mux.Tool("weigh", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("7 g")}, StructuredContent: []byte(`{"g":7}`)}, nil
	}), nil))
	url := serve(t, mux)
	for _, protocol := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		if got := psi(t, "", "call", "-protocol", protocol, url, "weigh"); got.code != exitOK || got.out != "7 g\n" || !strings.Contains(got.errOut, "not validated") {
			t.Errorf("exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
		}
	}
}

// The pages that an older server requires the user to visit are shown, and the call is
// repeated, also through a gateway.
func TestFindingZ5PagesToVisit(t *testing.T) {
	isolate(t)
	calls := 0
	mux := mcp.NewMux("kitchen", "v1.0.0", nil)
	mux.Tool("cook", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		if calls++; calls%2 == 1 {
			return nil, mcp.Errorf(-32042, "URL elicitation required").WithData(map[string]any{"elicitations": []any{
				map[string]string{"mode": "url", "elicitationId": "1", "url": "https://stove.example.com/connect", "message": "Connect the stove."},
			}})
		}
		return mcp.TextResult("cooked"), nil
	}), &mcp.Tool{}))
	url := serve(t, mux)
	older := mcp.LegacyVersions()[0]
	gateway := startServing(t, "gateway", "-protocol", older, url)
	for _, words := range [][]string{{"-protocol", older, url}, {gateway}, {"-protocol", older, gateway}} {
		got := psi(t, "y\n", append(append([]string{"call"}, words...), "cook")...)
		if got.code != exitOK || got.out != "cooked\n" || !strings.Contains(got.errOut, "https://stove.example.com/connect") {
			t.Errorf("%q: exit code %d, wrote %q and %q", words, got.code, got.out, got.errOut)
		}
	}
}
