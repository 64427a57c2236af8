// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"regexp"
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
		{func() { preflight("https://evil.example", "") }, "is not allowed (Options.AllowedOrigins)"}, // not a preflight
		{func() { s.post("{}", header{"Origin": app, "Access-Control-Request-Method": "PUT"}) }, ""},
	} {
		log.Reset()
		tt.send()
		if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "refused") {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	log.Reset()
	for range 62 {
		preflight("https://evil.example", "POST")
	}
	counts := regexp.MustCompile(`refused=\d+`).FindAllString(log.String(), -1)
	if got := strings.Join(counts, " "); got != "refused=3 refused=4 refused=5 refused=6 refused=7 refused=8 refused=9 refused=10 refused=11 refused=12 refused=13 refused=14 refused=15 refused=16 refused=32 refused=64" {
		t.Errorf("the refusals that are logged are %s", got)
	}
}
