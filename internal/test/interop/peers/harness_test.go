// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"
)

// A client is a connection from some client to some server.
type client interface {
	// version returns the negotiated version.
	version() string
	// names returns the sorted names of everything that the server lists.
	names(ctx context.Context) ([]string, error)
	// call calls a tool. Progress may be nil.
	call(ctx context.Context, tool string, args any, progress func(float64)) (*outcome, error)
	prompt(ctx context.Context, name string, args map[string]string) (string, error)
	read(ctx context.Context, uri string) (string, error)
	// complete completes an argument of a prompt or, if ref is a URI, a variable of a
	// template.
	complete(ctx context.Context, ref, argument, value string) ([]string, error)
	// listen subscribes to changes of the tools and, if uri is not "", of a resource, until
	// ctx is done.
	listen(ctx context.Context, uri string) error
	// code returns the JSON-RPC code of an error, or 0 if the client does not report codes.
	code(err error) int
	close() error
}

// told holds the notifications from a server. Notifications that exceed the buffers are
// dropped. Late is set for clients whose listen returns before the server has acknowledged.
type told struct {
	tools   chan bool
	updated chan string
	logged  chan string
	late    bool
}

func newTold() *told {
	return &told{tools: make(chan bool, 100), updated: make(chan string, 100), logged: make(chan string, 100)}
}

func put[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

// take returns the next notification from c.
func take[T any](ctx context.Context, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	case <-ctx.Done():
		return v, fmt.Errorf("nothing was told: %w", context.Cause(ctx))
	}
}

// outcome is the result of a tool call, or of any other request that returns content.
type outcome struct {
	Content []struct {
		Type     string   `json:"type"`
		Text     string   `json:"text"`
		URI      string   `json:"uri"`
		Data     []byte   `json:"data"`
		Resource contents `json:"resource"`
	} `json:"content"`
	Structured map[string]any `json:"structuredContent"`
	IsError    bool           `json:"isError"`
}

type contents struct {
	URI  string `json:"uri"`
	Text string `json:"text"`
	Blob []byte `json:"blob"`
}

// text returns the first text.
func (o *outcome) text() string {
	for _, block := range o.Content {
		if block.Type == "text" {
			return block.Text
		}
	}
	return ""
}

func (o *outcome) kinds() (kinds []string) {
	for _, block := range o.Content {
		kinds = append(kinds, block.Type)
	}
	return kinds
}

// convert converts a value of one implementation to a type of this package, by way of the
// JSON of the protocol.
func convert[To any](from any, err error) (*To, error) {
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	to := new(To)
	return to, json.Unmarshal(data, to)
}

// wirePrompt, wireRead and wireCompletion are results in their JSON form.
type wirePrompt struct {
	Messages []struct {
		Content struct{ Text string } `json:"content"`
	} `json:"messages"`
}

func (p *wirePrompt) text() (string, error) {
	if len(p.Messages) != 1 {
		return "", fmt.Errorf("%d messages", len(p.Messages))
	}
	return p.Messages[0].Content.Text, nil
}

type wireRead struct {
	Contents []contents `json:"contents"`
}

func (r *wireRead) text() (string, error) {
	if len(r.Contents) != 1 {
		return "", fmt.Errorf("%d contents", len(r.Contents))
	}
	return r.Contents[0].Text, nil
}

// A session is a client under test.
type session struct {
	client
	told *told
}

// mustCall calls a tool that must not fail.
func (s *session) mustCall(ctx context.Context, tool string, args any) (*outcome, error) {
	return s.succeeds(s.call(ctx, tool, args, nil))
}

func (s *session) succeeds(res *outcome, err error) (*outcome, error) {
	if err == nil && res.IsError {
		err = fmt.Errorf("the tool failed: %s", res.text())
	}
	return res, err
}

// A feature is something that a client can do with a server.
type feature struct {
	name  string
	try   func(ctx context.Context, s *session) error
	since string // first revision that has the feature; "" for all
}

// A lack is a feature that does not work, and the reason. It is tried anyway: once it
// works, the lack must be removed.
type lack struct {
	feature, why string
	era          string // "legacy" or "modern"; "" for both
	sometimes    bool   // it may work, so it is not tried
}

// A leg is a client and a server with a transport between them.
type leg struct {
	name     string
	versions []string // versions to request; "" to negotiate
	found    string   // the expected negotiated version
	connect  func(t *testing.T, version string, told *told) client
	lacks    []lack
}

const (
	featureLimit = 10 * time.Second
	lackLimit    = time.Second // for features that do not work
)

func (l *leg) run(t *testing.T, features []feature) {
	for _, version := range l.versions {
		want, name := version, version
		if version == "" {
			want, name = l.found, "found out"
		}
		t.Run(l.name+" "+name, func(t *testing.T) {
			s := &session{told: newTold()}
			s.client = l.connect(t, version, s.told)
			t.Cleanup(func() {
				if err := s.close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			if got := s.version(); got != want {
				t.Fatalf("version %s, want %s", got, want)
			}
			for _, f := range features {
				t.Run(f.name, func(t *testing.T) { l.try(t, s, f) })
			}
		})
	}
}

func (l *leg) try(t *testing.T, s *session, f feature) {
	if s.version() < f.since {
		t.Skip("this revision has none")
	}
	i := slices.IndexFunc(l.lacks, func(lack lack) bool {
		return lack.feature == f.name && (lack.era == "" || lack.era == eraOf(s.version()))
	})
	if i < 0 {
		ctx, cancel := context.WithTimeout(t.Context(), featureLimit)
		defer cancel()
		if err := f.try(ctx, s); err != nil {
			t.Error(err)
		}
		return
	}
	lack := l.lacks[i]
	if lack.sometimes {
		t.Skip("not tried:", lack.why)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lackLimit)
	defer cancel()
	err := f.try(ctx, s)
	if err == nil {
		t.Fatalf("works, although %s", lack.why)
	}
	t.Skipf("%s: %v", lack.why, err)
}

// checkLacks checks that every lack names a known feature.
func checkLacks(t *testing.T, legs []leg, features []feature) {
	t.Helper()
	known := map[string]bool{}
	for _, f := range features {
		known[f.name] = true
	}
	for _, l := range legs {
		for _, lack := range l.lacks {
			if !known[lack.feature] {
				t.Errorf("%s lacks %q, but the features are %q", l.name, lack.feature, slices.Sorted(maps.Keys(known)))
			}
		}
	}
}

// namesOf returns the names of the items in a list, up to its first error.
func namesOf[D any](list iter.Seq2[D, error], name func(D) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for d, err := range list {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(name(d), nil) {
				return
			}
		}
	}
}

// sortedNames returns the sorted names of all lists, or the first error.
func sortedNames(lists ...iter.Seq2[string, error]) ([]string, error) {
	var names []string
	for _, list := range lists {
		for name, err := range list {
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
