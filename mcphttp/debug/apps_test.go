// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcphttp/debug"
)

const hostOfApps = "http://127.0.0.1:8081"

// newAirline returns a server with one tool that has an app, and tools without one. The
// returned function returns the number of calls the server received.
func newAirline() (mux *mcp.Mux, calls func() int64) {
	mux = mcp.NewMux("airline", "v1.0.0", &mcp.MuxOptions{Logger: quiet})
	var n atomic.Int64
	seats := func(context.Context, struct {
		Flight string `json:"flight"`
		Row    int    `json:"row,omitempty"`
	}) (string, error) {
		n.Add(1)
		return "12A", nil
	}
	page := fstest.MapFS{"seats.html": {Data: []byte("<!doctype html><h1>Seats</h1>")}}
	mux.Resource("ui://seats", apps.Page(page, "seats.html", nil))
	mux.Tool("seat_map", mcp.ToolFunc(seats, apps.Tool(&mcp.Tool{Description: "Shows seats."}, "ui://seats")))
	mux.Tool("reserve", mcp.ToolFunc(seats, apps.Tool(nil, "ui://seats", apps.ForApp)))
	mux.Tool("plain", mcp.ToolFunc(seats, nil))
	return mux, n.Load
}

// The form of a tool with an app links to the app host with the arguments, and calls
// nothing.
func TestApp(t *testing.T) {
	mux, calls := newAirline()
	s := serve(t, mux, &debug.Options{Apps: hostOfApps + "/"})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, query := range []string{"", "?format=json"} {
		res, body := s.do(s.request("POST", query, url.Values{"action": {"call", "app"}, "kind": {"tool"}, "name": {"seat_map"}, "f.flight": {"PS 12 & <b>"}, "f.row": {"3"}}))
		to, err := res.Location()
		if err != nil || res.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d, %v\n%s", res.StatusCode, err, body)
		}
		if got, want := to.Query(), `{"flight":"PS 12 \u0026 \u003cb\u003e","row":3}`; to.Scheme+"://"+to.Host+to.Path != hostOfApps+"/" || got.Get("tool") != "seat_map" || got.Get("arguments") != want {
			t.Errorf("leads to %s", to)
		}
		if policy := res.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; form-action 'self' "+hostOfApps) {
			t.Error(policy)
		}
	}
	if n := calls(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// Only a tool with an app for models has the button, and only if there is an app host.
func TestAppButton(t *testing.T) {
	mux, _ := newAirline()
	const button = `value="app"`
	for _, test := range []struct {
		opts debug.Options
		tool string
		has  bool
	}{
		{debug.Options{Apps: hostOfApps}, "seat_map", true},
		{debug.Options{Apps: hostOfApps}, "reserve", false},
		{debug.Options{Apps: hostOfApps}, "plain", false},
		{debug.Options{Apps: hostOfApps, ReadOnly: true}, "seat_map", false},
		{debug.Options{}, "seat_map", false},
	} {
		s := serve(t, mux, &test.opts)
		if _, body := s.do(s.request("GET", "?view=item&kind=tool&name="+test.tool, nil)); strings.Contains(body, button) != test.has {
			t.Errorf("%s with %q, read-only %t: the button is there: %t", test.tool, test.opts.Apps, test.opts.ReadOnly, !test.has)
		}
		res, body := s.do(s.request("POST", "", url.Values{"action": {"app"}, "name": {test.tool}, "json": {"[]"}}))
		if want := map[bool]int{true: http.StatusBadRequest, false: http.StatusNotFound}[test.has]; res.StatusCode != want && !test.opts.ReadOnly {
			t.Errorf("%s: %d, want %d\n%s", test.tool, res.StatusCode, want, body)
		}
	}
}

// The app host becomes part of a content security policy, so only an origin is accepted.
func TestOriginOfApps(t *testing.T) {
	for _, origin := range []string{"127.0.0.1:8081", "ftp://a", "http://", "http://a/b", "http://a?b", "http://a#b", "http://u@a", "javascript:1", "http://a;script-src", "http://*"} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, "which is not an origin") {
					t.Errorf("%q: %s", origin, v)
				}
			}()
			debug.NewHandler(newMux(t), &debug.Options{Apps: origin})
		}()
	}
}
