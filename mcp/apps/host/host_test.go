// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
	"github.com/go-psi/psi/mcp/mcptest"
)

const sandbox = "http://127.0.0.1:8081"

func text(s string) func(context.Context, struct{}) (string, error) {
	return func(context.Context, struct{}) (string, error) { return s, nil }
}

func server() *mcp.Mux {
	mux := mcp.NewMux("airline", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
	files := fstest.MapFS{"seats.html": {Data: []byte("<!doctype html><h1>Seats</h1></script>")}}
	mux.Resource("ui://seats", apps.Page(files, "seats.html", &apps.Options{CSP: &apps.CSP{ConnectDomains: []string{"https://api.example"}}}))
	mux.Resource("ui://broken", mcp.ResourceFunc(text("<p>"), nil))
	mux.Resource("notes://a", mcp.ResourceFunc(text("a note"), nil))
	tool := func(name string, h mcp.Handler) { mux.Tool(name, h) }
	tool("seat_map", mcp.ToolFunc(text("12A"), apps.Tool(&mcp.Tool{Description: "Shows <b>seats</b>."}, "ui://seats")))
	tool("reserve", mcp.ToolFunc(text("reserved"), apps.Tool(nil, "ui://seats", apps.ForApp)))
	tool("refund", mcp.ToolFunc(text("refunded"), apps.Tool(nil, "", apps.ForModel)))
	tool("broken", mcp.ToolFunc(text(""), apps.Tool(nil, "ui://broken")))
	tool("plain", mcp.ToolFunc(text(""), nil))
	mux.Tool("asks", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Elicit[struct{}](ctx, "sure", "Sure?")
		return "", err
	}, apps.Tool(nil, "ui://seats")))
	return mux
}

func newHost(t *testing.T, opts *host.Options) *host.Host {
	t.Helper()
	h, err := host.New(mcptest.Connect(t, server()), sandbox, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// do serves a request and returns the status and the body.
func do(h http.Handler, method, target, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// postForm shows a tool by submitting the form of the list.
func postForm(h http.Handler, form url.Values, header ...string) (int, string) {
	header = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)
	return do(h, "POST", "/show", form.Encode(), header...)
}

// show shows a tool and returns the ID of the view.
func show(t *testing.T, h http.Handler, tool string) string {
	t.Helper()
	status, body := postForm(h, url.Values{"tool": {tool}})
	found := regexp.MustCompile(`"view":"([A-Z0-9]+)"`).FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%d\n%s", status, body)
	}
	return found[1]
}

// request sends a request on behalf of a page.
func request(h http.Handler, view, method, params string) string {
	_, body := do(h, "POST", "/views/"+view+"/request", fmt.Sprintf(`{"method":%q,"params":%s}`, method, params))
	return body
}

func TestIndex(t *testing.T) {
	status, body := do(newHost(t, nil), "GET", "/", "")
	if status != http.StatusOK || !strings.Contains(body, "Shows &lt;b&gt;seats&lt;/b&gt;.") || strings.Contains(body, `value="reserve"`) || strings.Contains(body, `value="plain"`) {
		t.Errorf("%d\n%s", status, body)
	}
}

// The host serves the files that its pages load.
func TestFiles(t *testing.T) {
	h := newHost(t, nil)
	_, index := do(h, "GET", "/", "")
	_, shown := postForm(h, url.Values{"tool": {"seat_map"}})
	for _, name := range []string{"host.js", "host.css"} {
		status, body := do(h, "GET", "/"+name, "")
		if status != http.StatusOK || len(body) < 100 || !strings.Contains(index+shown, name) {
			t.Errorf("%s: %d, %d bytes", name, status, len(body))
		}
	}
}

// A view contains the configuration that its script needs, and no value ends the script
// element early.
func TestShow(t *testing.T) {
	_, body := postForm(newHost(t, nil), url.Values{"tool": {"seat_map"}, "arguments": {`{"flight":"</script>"}`}})
	_, config, _ := strings.Cut(body, `id="config">`)
	config, _, _ = strings.Cut(config, "</script>")
	var got struct {
		HTML, Sandbox, Allow string
		CSP                  apps.CSP
		Arguments            map[string]string
		Border               bool
	}
	if err := json.Unmarshal([]byte(config), &got); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if got.Arguments["flight"] != "</script>" || got.HTML != "<!doctype html><h1>Seats</h1></script>" || got.Sandbox != sandbox || !got.Border || got.CSP.ConnectDomains[0] != "https://api.example" {
		t.Errorf("%+v", got)
	}
}

// If a tool cannot be shown, the error says why.
func TestShowFails(t *testing.T) {
	h := newHost(t, nil)
	for _, test := range []struct{ tool, arguments, want string }{
		{"reserve", "{}", "there is no tool &#34;reserve&#34; for the model"},
		{"no", "{}", "there is no tool"},
		{"plain", "{}", "has no page"},
		{"broken", "{}", "its MIME type is"},
		{"seat_map", "[]", "not a JSON object"},
		{"seat_map", "null", "not a JSON object"},
		{"seat_map", `{"a":"` + strings.Repeat("a", 4<<20) + `"}`, "too large"},
	} {
		if status, body := postForm(h, url.Values{"tool": {test.tool}, "arguments": {test.arguments}}); status < 400 || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d\n%s", test.tool, status, body)
		}
	}
}

// The tool of a view is called as the model. Its page can call the tools for apps.
func TestVisibility(t *testing.T) {
	h := newHost(t, nil)
	view := show(t, h, "seat_map")
	if _, body := do(h, "POST", "/views/"+view+"/call", ""); !strings.Contains(body, `"text":"12A"`) {
		t.Error(body)
	}
	for tool, want := range map[string]string{
		"reserve": "reserved", "seat_map": "12A", "refund": `"code":-32000,"message":"denied: apps: the tool \"refund\" is for the model only`,
		"no": `"code":-32602`, "asks": "elicitation",
	} {
		if body := request(h, view, "tools/call", `{"name":"`+tool+`","_meta":{"progressToken":1}}`); !strings.Contains(body, want) {
			t.Errorf("%s: %s", tool, body)
		}
	}
	if body := request(h, view, "tools/list", "{}"); !strings.Contains(body, "reserve") || strings.Contains(body, "refund") {
		t.Error(body)
	}
}

func TestRequests(t *testing.T) {
	var said, logged string
	h := newHost(t, &host.Options{
		Message: func(_ context.Context, tool string, content mcp.Contents) error {
			if said = tool + ": " + content[0].(*mcp.TextContent).Text; strings.Contains(said, "no") {
				return errors.New("not now")
			}
			return nil
		},
		ModelContext: func(_ context.Context, _ string, c *host.ModelContext) error {
			if c.StructuredContent != nil {
				return errors.New("texts only")
			}
			return nil
		},
		Log: func(_ context.Context, _ string, p *mcp.LoggingMessageParams) { logged = fmt.Sprint(p.Data) },
	})
	view := show(t, h, "seat_map")
	for _, c := range []struct{ method, params, want string }{
		{"resources/read", `{"uri":"notes://a"}`, "a note"},
		{"resources/list", `{}`, "notes://a"},
		{"ui/message", `{"role":"user","content":{"type":"text","text":"hello"}}`, `{"result":{}}`},
		{"ui/message", `{"role":"user","content":[{"type":"text","text":"no"}]}`, "denied: not now"},
		{"ui/message", `{"role":"assistant","content":[{"type":"text","text":"a"}]}`, "the role user"},
		{"ui/message", `{"role":"user","content":[]}`, "the role user"},
		{"ui/update-model-context", `{"content":[{"type":"text","text":"a"}]}`, `{"result":{}}`},
		{"ui/update-model-context", `{"structuredContent":{}}`, "denied: texts only"},
		{"notifications/message", `{"level":"info","data":"hm"}`, `{"result":{}}`},
		{"completion/complete", `{}`, `"code":-32601`},
		{"server/discover", `{}`, `"code":-32601`},
		{"tools/call", `{"name":7}`, `"code":-32602`},
		{"tools/call", `7,"x":`, `"code":-32600`},
	} {
		if body := request(h, view, c.method, c.params); !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %s, want %s", c.method, c.params, body, c.want)
		}
	}
	if said != "seat_map: no" || logged != "hm" {
		t.Errorf("%q, %q", said, logged)
	}
	if body := request(h, "NOVIEW", "tools/list", "{}"); !strings.Contains(body, "no longer open") {
		t.Error(body)
	}
	if body := request(h, view, "tools/call", `"`+strings.Repeat("x", 5<<20)+`"`); !strings.Contains(body, "too large") {
		t.Errorf("%.200s", body)
	}
}

// If no callbacks are set, messages are declined and updates of the model context are
// ignored.
func TestNoFunctions(t *testing.T) {
	h := newHost(t, &host.Options{Logger: slog.New(slog.DiscardHandler)})
	view := show(t, h, "seat_map")
	for method, want := range map[string]string{"ui/message": "denied", "ui/update-model-context": `{"result":{}}`, "notifications/message": `{"result":{}}`} {
		if body := request(h, view, method, `{"role":"user","content":[{"type":"text","text":"a"}],"level":"info","data":1}`); !strings.Contains(body, want) {
			t.Errorf("%s: %s", method, body)
		}
	}
}

// The log messages of a page do not fill the log.
func TestFindingX14MessagesOfPagesAreLoggedSparsely(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, &host.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	view := show(t, h, "seat_map")
	log.Reset()
	for range 100 {
		request(h, view, "notifications/message", `{"level":"info","data":"`+strings.Repeat("x", 10_000)+`"}`)
	}
	if lines := strings.Count(log.String(), "log message of a page"); lines != 18 || log.Len() > 18*600 {
		t.Errorf("of 100 messages, %d are logged, in %d bytes", lines, log.Len())
	}
}

// If there are too many views, the oldest one is closed.
func TestMaxViews(t *testing.T) {
	h := newHost(t, nil)
	var views []string
	for range 101 {
		views = append(views, show(t, h, "seat_map"))
	}
	for i, view := range views {
		if open := strings.Contains(request(h, view, "tools/list", "{}"), "result"); open != (i > 0) {
			t.Errorf("view %d is open: %t", i, open)
		}
	}
}

// Requests from other sites are rejected.
func TestOtherSites(t *testing.T) {
	h := newHost(t, &host.Options{AllowedHosts: []string{"apps.example"}})
	for status, headers := range map[int][][]string{
		http.StatusForbidden: {
			{"Host", "evil.example"}, {"Host", "evil.example:8080"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
			{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:8081"},
		},
		http.StatusOK: {
			nil, {"Host", "localhost:8080"}, {"Host", "[::1]:8080"}, {"Host", "apps.example"}, {"Sec-Fetch-Site", "same-origin"},
			{"Sec-Fetch-Site", "none"}, {"Origin", "http://127.0.0.1:8080"},
		},
	} {
		for _, header := range headers {
			if got, body := do(h, "GET", "/", "", header...); got != status {
				t.Errorf("%q: %d %.100s", header, got, body)
			}
		}
	}
}

// A link cannot show a tool, because showing it calls the tool. Over plain HTTP, under a
// host name other than that of the local machine, browsers do not report the site that a
// link is on. For a form, they do.
func TestShowIsNoLink(t *testing.T) {
	h := newHost(t, &host.Options{AllowedHosts: []string{"apps.example"}})
	if status, body := do(h, "GET", "/show?tool=seat_map", "", "Host", "apps.example"); status != http.StatusMethodNotAllowed {
		t.Errorf("a link: %d\n%s", status, body)
	}
	if status, body := do(h, "POST", "/show?tool=seat_map", "", "Host", "apps.example"); status != http.StatusNotFound {
		t.Errorf("a form without a tool, at an address with one: %d\n%s", status, body)
	}
	for origin, want := range map[string]int{"http://evil.example": http.StatusForbidden, "null": http.StatusForbidden, "http://apps.example": http.StatusOK} {
		if status, body := postForm(h, url.Values{"tool": {"seat_map"}}, "Host", "apps.example", "Origin", origin); status != want {
			t.Errorf("a form of %s: %d, want %d\n%.300s", origin, status, want, body)
		}
	}
}

// A page on another port of the machine can link to the list of apps, but can do nothing
// else.
func TestLinks(t *testing.T) {
	h := newHost(t, nil)
	view := show(t, h, "seat_map")
	link := []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	with := func(header ...string) []string { return append(slices.Clone(link), header...) }
	for what, test := range map[string]struct {
		method, target string
		header         []string
		want           int
	}{
		"the list":              {"GET", "/", link, http.StatusOK},
		"a tool":                {"GET", "/?tool=seat_map&arguments={}", link, http.StatusOK},
		"a tool without a page": {"GET", "/?tool=plain", link, http.StatusNotFound},
		"the page of a tool":    {"POST", "/show", link, http.StatusForbidden},
		"a call":                {"POST", "/views/" + view + "/call", link, http.StatusForbidden},
		"a script":              {"GET", "/host.js", link, http.StatusForbidden},
		"another method":        {"POST", "/", link, http.StatusForbidden},
		"a frame":               {"GET", "/", with("Sec-Fetch-Dest", "iframe"), http.StatusForbidden},
		"a request of a script": {"GET", "/", with("Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"), http.StatusForbidden},
		"another site":          {"GET", "/", with("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"another name":          {"GET", "/", with("Host", "evil.example"), http.StatusForbidden},
		"an origin":             {"GET", "/", with("Origin", "http://127.0.0.1:8081"), http.StatusForbidden},
	} {
		if got, body := do(h, test.method, test.target, "", test.header...); got != test.want {
			t.Errorf("%s: %d, want %d: %.100s", what, got, test.want, body)
		}
	}
}

// A link to a tool fills in its form but opens no view; that is left to the user.
func TestLinkToTool(t *testing.T) {
	_, body := do(newHost(t, nil), "GET", "/?tool=seat_map&arguments="+url.QueryEscape(`{"flight":"</textarea><script>"}`), "")
	for _, want := range []string{`value="seat_map"`, `{&#34;flight&#34;:&#34;&lt;/textarea&gt;&lt;script&gt;&#34;}</textarea>`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	if strings.Contains(body, "<script") || strings.Contains(body, `value="broken"`) {
		t.Error(body)
	}
}

// The sandbox serves the proxy with the policy of the page, for a single host.
func TestSandbox(t *testing.T) {
	h := host.Sandbox()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?host=http://127.0.0.1:8080&csp="+url.QueryEscape(`{"connectDomains":["https://api.example"]}`), nil))
	policy := w.Header().Get("Content-Security-Policy")
	if w.Code != http.StatusOK || !strings.Contains(policy, "connect-src 'self' https://api.example;") || !strings.HasSuffix(policy, "; frame-ancestors http://127.0.0.1:8080") {
		t.Errorf("%d %s", w.Code, policy)
	}
	if body, err := io.ReadAll(w.Body); err != nil || !strings.Contains(string(body), `allow-scripts allow-forms`) {
		t.Errorf("%s, %v", body, err)
	}
	for target, want := range map[string]int{
		"/": http.StatusBadRequest, "/?host=javascript:1": http.StatusBadRequest, "/?host=http://a%20b": http.StatusBadRequest,
		"/?host=http://a;script-src": http.StatusBadRequest, "/?host=http://a&csp=7": http.StatusBadRequest,
		"/?host=http://a&csp=" + url.QueryEscape(`{"frameDomains":["*"]}`): http.StatusBadRequest,
		"/other?host=http://a": http.StatusNotFound, "/?host=http://a&csp=null": http.StatusOK,
	} {
		if got, body := do(h, "GET", target, ""); got != want {
			t.Errorf("%s: %d %s", target, got, body)
		}
	}
}

func TestNew(t *testing.T) {
	for _, origin := range []string{"", "127.0.0.1:8081", "ftp://a", "http://", "http://a/b", "http://a?b", "javascript:1"} {
		if _, err := host.New(nil, origin, nil); err == nil || !strings.Contains(err.Error(), "is not an origin") {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
