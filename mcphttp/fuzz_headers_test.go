// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// mirroring returns a server with a tool whose arguments are mirrored in headers.
func mirroring(properties string) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	echo := func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(string(req.Arguments())), nil
	}
	mux.Tool("t", mcp.WithDescription(mcp.HandlerFunc(echo), &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)}))
	return mux
}

const (
	twoMirrored = `{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}`
	allMirrored = `{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"flag":{"type":"boolean","x-mcp-header":"Flag"},` +
		`"inner":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"inner-Zone"}}}}`
)

// onPaper is a RoundTripper that serializes a request and parses it again, like a network
// does.
type onPaper struct {
	t       testing.TB
	handler http.Handler
}

func (p onPaper) RoundTrip(r *http.Request) (*http.Response, error) {
	for key, values := range r.Header {
		for _, v := range values {
			if strings.ContainsFunc(v, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
				p.t.Errorf("the header %s is %q", key, v)
			}
		}
	}
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		return nil, err
	}
	received, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		p.t.Errorf("what was sent cannot be read: %v", err)
		return nil, err
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, received.WithContext(r.Context()))
	return w.Result(), nil
}

// For any name and arguments, the server accepts that the client's headers match the body.
func FuzzMirroredHeaders(f *testing.F) {
	f.Add("t", []byte(`{"region":"eu","n":42,"flag":true,"inner":{"zone":"a"}}`))
	f.Add("t", []byte(`{"region":" \u00fc\r\n","n":-0.0,"flag":false,"inner":{"zone":""}}`))
	f.Add("t", []byte(`{"region":"=?base64?YQ==?=","n":9007199254740993,"flag":null,"inner":{"zone":"=?base64?"}}`))
	f.Add("t", []byte(`{"region":7,"n":"7","flag":[1, 2],"inner":{"zone":{"a": "\t"}}}`))
	f.Add("t", []byte(`{"n":1e3,"inner":null}`))
	f.Add("日本\n", []byte(`{}`))
	f.Add(" t", []byte(`{"region":" padded ","inner":{"zone":"\t"}}`))
	f.Add("t", []byte(`{"region":" padded","inner":{"zone":"padded "}}`))
	handler := mcphttp.NewHandler(mirroring(allMirrored), &mcphttp.Options{Logger: quiet})
	client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Logger: quiet})
	f.Fuzz(func(t *testing.T, name string, arguments []byte) {
		transport := mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{
			Client: &http.Client{Transport: onPaper{t, handler}}, Logger: quiet,
		})
		p := &mcp.CallToolParams{Name: name, Arguments: arguments}
		if _, err := mcp.NewRequest(mcp.MethodCallTool, p); err != nil || len(arguments) > 8<<10 || len(name) > 8<<10 {
			t.Skip()
		}
		c, err := client.Connect(t.Context(), transport)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		res, err := c.CallTool(t.Context(), p)
		switch code := mcp.CodeOf(err); {
		case name != "t" && code != mcp.CodeInvalidParams, name == "t" && err != nil && code != mcp.CodeInvalidParams:
			t.Errorf("%q %s: %v", name, arguments, err)
		case err == nil && len(res.Content) != 1:
			t.Errorf("%q %s: got %+v", name, arguments, res)
		}
	})
}

const (
	absent = "-"    // stands for an absent header
	again  = "\x00" // separates the values of a repeated header
)

// Headers that do not match the body are rejected, and those that do are accepted.
func FuzzHeaders(f *testing.F) {
	f.Add(mcp.LatestVersion, "tools/call", "t", "eu", "42", uint8(0), "t", []byte(`{"region":"eu","n":42}`))
	f.Add(mcp.LatestVersion, "tools/call", "t", absent, absent, uint8(0), "t", []byte(`{"region":null}`))
	f.Add(mcp.LatestVersion, "tools/call", "t", "=?base64?w7w=?=", "42.0", uint8(0), "t", []byte(`{"region":"ü","n":42}`))
	f.Add(mcp.LatestVersion, "tools/call", "t", absent, "0x10", uint8(0), "t", []byte(`{"region":"","n":16}`))
	f.Add(mcp.LatestVersion, "tools/call", "T", "EU", "+1", uint8(0), "t", []byte(`{"region":"eu","n":1}`))
	f.Add(mcp.LatestVersion, "tools/call", "t", "eu\x00eu", absent, uint8(0), "t", []byte(`{"region":"eu"}`))
	f.Add(mcp.LatestVersion, "tools/call", "t\x00t", absent, absent, uint8(0), "t", []byte(`{}`))
	f.Add(mcp.LatestVersion, "prompts/get", "=?base64?cA==?=", absent, absent, uint8(1), "p", []byte(`{}`))
	f.Add(mcp.LatestVersion, "resources/read", "=?base64?cA=?=", absent, absent, uint8(2), "p", []byte(`{}`))
	f.Add(mcp.LatestVersion, "tools/list", absent, "x", "1", uint8(3), "t", []byte(`{}`))
	f.Add("2025-11-25", "Tools/Call", absent, "x", "1", uint8(3), "t", []byte(`{}`))
	methods := []string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource, mcp.MethodListTools, "vendor/x"}
	handler := mcphttp.NewHandler(mirroring(twoMirrored), &mcphttp.Options{Logger: quiet})
	f.Fuzz(func(t *testing.T, version, method, name, region, n string, i uint8, bodyName string, arguments []byte) {
		bodyMethod := methods[int(i)%len(methods)]
		member := "name"
		if bodyMethod == mcp.MethodReadResource {
			member = "uri"
		}
		quoted, _ := json.Marshal(bodyName)
		body, _ := modern(bodyMethod, "", fmt.Sprintf(`%q:%s,"arguments":%s`, member, quoted, arguments))
		m, err := transport.ParseMessage([]byte(body))
		if err != nil {
			t.Skip()
		}
		req, err := core.NewRequest(&m)
		if err != nil || req.Name() != bodyName {
			t.Skip()
		}
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
		for key, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name, "Mcp-Param-Region": region, "Mcp-Param-N": n} {
			if value != absent {
				r.Header[key] = strings.Split(value, again)
			}
		}
		twice := strings.Contains(version+method, again) || i%5 < 3 && strings.Contains(name, again)
		agree := !twice && version == mcp.LatestVersion && method == bodyMethod && (i%5 > 2 || name != absent && headerSays(name, bodyName)) &&
			(bodyMethod != mcp.MethodCallTool || bodyName != "t" || mirrors(region, n, req.Arguments()))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		code := reply{body: w.Body.String()}.code(t)
		if agree == (code == mcp.CodeHeaderMismatch) || !agree && w.Code != http.StatusBadRequest {
			t.Errorf("headers %q, body %s: %d %s, although they agree: %t", r.Header, body, w.Code, w.Body, agree)
		}
	})
}

// headerSays reports whether a header value decodes to a text.
func headerSays(value, text string) bool {
	got, err := transport.DecodeHeaderValue(value)
	return err == nil && got == text
}

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// mirrors reports whether header values match the arguments.
func mirrors(region, n string, arguments json.RawMessage) bool {
	var args map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &args)
	return mirrorsOne(region, args["region"], false) && mirrorsOne(n, args["n"], true)
}

func mirrorsOne(header string, argument json.RawMessage, number bool) bool {
	if strings.Contains(header, again) {
		return false
	}
	if argument == nil || string(argument) == "null" {
		return header == absent
	}
	if header == absent {
		return string(argument) == `""`
	}
	value, err := transport.DecodeHeaderValue(header)
	if err != nil {
		return false
	}
	if text := ""; argument[0] == '"' {
		return json.Unmarshal(argument, &text) == nil && value == text
	}
	if value == string(argument) {
		return true
	}
	if !number || !plainNumber.MatchString(value) {
		return false
	}
	a, _ := strictjson.ParseDecimal(value)
	b, ok := strictjson.ParseDecimal(string(argument))
	return ok && a == b
}
