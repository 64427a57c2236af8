// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

// A page that is not let in learns nothing from its browser, so the log of the server says
// why, and a page cannot fill it.
func TestFindingI10RefusalsAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	s := serve(t, mcphttp.CORS(app)(mcphttp.NewHandler(refusals(), &mcphttp.Options{Logger: logger})))
	preflight := func(origin, method string) {
		s.do(s.request(t.Context(), http.MethodOptions, "", header{"Origin": origin, "Access-Control-Request-Method": method}))
	}
	for _, tt := range []struct {
		send func()
		want string // "" for nothing
	}{
		{func() { preflight(app, "POST") }, ""},
		{func() { preflight("https://evil.example", "POST") }, `the origin \"https://evil.example\" is not one of CORS`},
		{func() { preflight(app, "PUT") }, `the method \"PUT\" is not one of the protocol`},
		{func() { s.post(initialize("2025-11-25"), header{"Origin": "https://evil.example"}) }, "is not allowed (Options.AllowedOrigins)"},
		{func() { s.post(initialize("2025-11-25"), header{"Origin": app}) }, ""},
	} {
		log.Reset()
		tt.send()
		if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "refused") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	log.Reset()
	for range 1000 {
		preflight("https://evil.example", "POST")
	}
	if n := strings.Count(log.String(), "refused"); n > 2*30 {
		t.Errorf("%d refusals are logged", n)
	}
}
