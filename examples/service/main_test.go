// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

// start runs the service as main does, and stops it as Kubernetes does.
func start(t *testing.T, issuer string) (resource, adminURL string) {
	t.Helper()
	public, private := listen(t), listen(t)
	resource = "http://" + public.Addr().String() + "/mcp"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &config{resource: resource, host: public.Addr().String(), issuer: issuer}, public, private)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error("stopping:", err)
		}
	})
	return resource, "http://" + private.Addr().String()
}

// startWithIssuer runs the service with an issuer of tokens for it.
func startWithIssuer(t *testing.T) (issuer *authtest.Issuer, resource, adminURL string) {
	t.Helper()
	issuer = authtest.NewIssuer(t, "")
	resource, adminURL = start(t, issuer.URL)
	issuer.Audience = resource
	return issuer, resource, adminURL
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func connect(t *testing.T, resource, token, version string) (*mcp.Conn, error) {
	t.Helper()
	opts := &mcphttp.TransportOptions{}
	if token != "" {
		opts.Header = http.Header{"Authorization": {"Bearer " + token}}
	}
	transport := mcphttp.NewTransport(resource, opts)
	conn, err := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{Version: version}).Connect(t.Context(), transport)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// fetch sends an HTTP request and returns the status and the body of the response.
func fetch(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestService changes the inventory through MCP and REST, with and without the scope for it.
func TestService(t *testing.T) {
	issuer, resource, adminURL := startWithIssuer(t)
	items := strings.TrimSuffix(resource, "/mcp") + "/v1/items"
	reader := issuer.Token(authtest.Claims{"scope": scopeRead})
	writer := issuer.Token(authtest.Claims{"scope": scopeRead + " " + scopeWrite})

	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		conn, err := connect(t, resource, writer, version)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mcp.Call[item](t.Context(), conn, "set_count", setIn{"lamp", 7}); err != nil {
			t.Error(err)
		}
		if status, body := fetch(t, http.MethodGet, items+"?q=lamp", reader, ""); status != http.StatusOK || body != `[{"name":"lamp","count":7}]`+"\n" {
			t.Errorf("REST says %d %s", status, body)
		}
		if status, body := fetch(t, http.MethodPut, items+"/lamp", writer, "8"); status != http.StatusOK {
			t.Errorf("PUT: %d %s", status, body)
		}
		if found, err := mcp.Call[findOut](t.Context(), conn, "find_items", findIn{"lamp"}); err != nil || !slices.Equal(found.Items, []item{{"lamp", 8}}) {
			t.Errorf("MCP says %+v, %v", found, err)
		}

		limited, err := connect(t, resource, reader, version)
		if err != nil {
			t.Fatal(err)
		}
		_, err = mcp.Call[item](t.Context(), limited, "set_count", setIn{"lamp", 9})
		if refusal, ok := errors.AsType[*mcphttp.StatusError](err); !ok || !strings.Contains(refusal.Header.Get("WWW-Authenticate"), scopeWrite) {
			t.Errorf("without the scope: %v", err)
		}
	}
	if status, _ := fetch(t, http.MethodPut, items+"/lamp", reader, "9"); status != http.StatusForbidden {
		t.Errorf("PUT without the scope: %d", status)
	}
	if _, metrics := fetch(t, http.MethodGet, adminURL+"/metrics", "", ""); !strings.Contains(metrics, `mcp_server_operation_duration_seconds_count{error_type="",gen_ai_prompt_name="",gen_ai_tool_name="find_items",mcp_method_name="tools/call"} 2`) {
		t.Errorf("metrics:\n%s", metrics)
	}
}

// TestNames puts items whose names paths escape, and some that the tools would not take.
func TestNames(t *testing.T) {
	issuer, resource, _ := startWithIssuer(t)
	items := strings.TrimSuffix(resource, "/mcp") + "/v1/items/"
	writer := issuer.Token(authtest.Claims{"scope": scopeRead + " " + scopeWrite})
	for escaped, want := range map[string]string{
		"desk%20lamp":                     `{"name":"desk lamp","count":8}`,
		"1%2F2%20inch%20pipe":             `{"name":"1/2 inch pipe","count":8}`,
		"100%25":                          `{"name":"100%","count":8}`,
		strings.Repeat("%C3%A9", maxName): `{"name":"` + strings.Repeat("é", maxName) + `","count":8}`,
		strings.Repeat("x", maxName+1):    "expected a name of up to 100 characters",
		"%ff":                             "expected a name of up to 100 characters",
	} {
		if _, body := fetch(t, http.MethodPut, items+escaped, writer, "8"); body != want+"\n" {
			t.Errorf("PUT %s: %s, want %s", escaped, body, want)
		}
	}
}

// TestStrangers are callers without a token, and with one that is not valid.
func TestStrangers(t *testing.T) {
	issuer, resource, _ := startWithIssuer(t)
	strangers := issuer.InvalidTokens(authtest.Claims{"scope": scopeRead})
	strangers["absent"] = ""
	for name, token := range strangers {
		if _, err := connect(t, resource, token, ""); !errors.Is(err, mcp.ErrUnauthorized) {
			t.Errorf("%s: MCP: %v", name, err)
		}
		if status, _ := fetch(t, http.MethodGet, strings.TrimSuffix(resource, "/mcp")+"/v1/items", token, ""); status != http.StatusUnauthorized {
			t.Errorf("%s: REST: %d", name, status)
		}
	}
}

func TestHealth(t *testing.T) {
	_, _, adminURL := startWithIssuer(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := fetch(t, http.MethodGet, adminURL+path, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
}
