// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
)

// A server has the tools of the tests and records the reports of pages.
type server struct {
	mux *mcp.Mux

	mu      sync.Mutex
	changed chan struct{} // closed when a report is added
	reports []report
}

type report struct {
	Event  string `json:"event"`
	Detail string `json:"detail"`
}

type seat struct {
	Flight string `json:"flight"`
	Seat   string `json:"seat"`
}

const uri = "ui://test/page"

// newServer returns a server with one page.
func newServer(t *testing.T, fsys fs.FS, name string, opts *apps.Options) *server {
	t.Helper()
	s := &server{mux: mcp.NewMux("test", "v1.0.0", nil), changed: make(chan struct{})}
	s.mux.Resource(uri, apps.Page(fsys, name, opts))
	s.mux.Resource("notes://a", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "a note", nil }, nil))
	s.mux.Tool("seat_map", mcp.ToolFunc(s.seatMap, apps.Tool(&mcp.Tool{Title: "Seats", Description: "Shows free seats."}, uri)))
	s.mux.Tool("slow", mcp.ToolFunc(s.slow, apps.Tool(&mcp.Tool{Description: "Never ends."}, uri)))
	s.mux.Tool("reserve_seat", mcp.ToolFunc(s.reserve, apps.Tool(nil, uri, apps.ForApp)))
	s.mux.Tool("report", mcp.ToolFunc(s.report, apps.Tool(nil, uri, apps.ForApp)))
	s.mux.Tool("model_only", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "called", nil }, apps.Tool(nil, "", apps.ForModel)))
	return s
}

func (s *server) seatMap(_ context.Context, in struct {
	Flight string `json:"flight"`
}) (any, error) {
	return map[string]any{"flight": in.Flight, "free": []string{"1A", "1C", "2B"}}, nil
}

func (s *server) slow(ctx context.Context, _ struct{}) (string, error) {
	<-ctx.Done()
	s.add(report{"server-cancelled", ""})
	return "", context.Cause(ctx)
}

func (s *server) reserve(_ context.Context, in seat) (string, error) {
	s.add(report{"reserved", in.Seat})
	return fmt.Sprintf("Seat %s on %s is yours.", in.Seat, in.Flight), nil
}

func (s *server) report(_ context.Context, in report) (string, error) {
	s.add(in)
	return "noted", nil
}

func (s *server) add(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, r)
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until a page has reported an event, and returns the details of all its
// reports.
func (s *server) wait(t *testing.T, event string) []string {
	t.Helper()
	return s.waitUntil(t, event, func(details []string) bool { return details != nil })
}

// waitUntil waits until wanted accepts the details of all reports of an event, and returns
// them.
func (s *server) waitUntil(t *testing.T, event string, wanted func(details []string) bool) []string {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		var details []string
		for _, r := range s.reports {
			if r.Event == event {
				details = append(details, r.Detail)
			}
		}
		all, changed := slices.Clone(s.reports), s.changed
		s.mu.Unlock()
		if wanted(details) {
			return details
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("there is no report of %q among %q", event, all)
		}
	}
}

// has reports whether a page has reported an event.
func (s *server) has(event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reports, func(r report) bool { return r.Event == event })
}

// want waits for an event and checks the detail of its first report.
func (s *server) want(t *testing.T, event, detail string) {
	t.Helper()
	if got := s.wait(t, event); got[0] != detail {
		t.Errorf("%s: %q, want %q", event, got, detail)
	}
}

// connect returns a connection to the server.
func (s *server) connect(t *testing.T) *mcp.Conn {
	t.Helper()
	client := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}})
	conn, err := client.Connect(t.Context(), mcp.InProcess(s.mux))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// host starts a host connected to the server and returns its origin.
func (s *server) host(t *testing.T) string {
	t.Helper()
	h, err := host.New(s.connect(t), serve(t, host.Sandbox()), &host.Options{
		Name: "PsiHost", Version: "v1.2.3",
		Message: func(_ context.Context, _ string, content mcp.Contents) error {
			s.add(report{"host-message", content[0].(*mcp.TextContent).Text})
			return nil
		},
		ModelContext: func(_ context.Context, _ string, c *host.ModelContext) error {
			s.add(report{"host-context", c.Content[0].(*mcp.TextContent).Text})
			return nil
		},
		Log: func(_ context.Context, _ string, p *mcp.LoggingMessageParams) {
			s.add(report{"host-log", fmt.Sprint(p.Data)})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, h)
}

// seats returns the files of the page in examples/apps.
func seats() fs.FS { return os.DirFS("../../../examples/apps/page") }

// page returns the files of a page.
func page(text string) fs.FS { return fstest.MapFS{"page.html": {Data: []byte(text)}} }

// jsonOf returns the JSON of a value.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
