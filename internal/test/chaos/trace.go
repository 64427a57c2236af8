// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// slow is how long an attempt may take before its diagnosis is logged: the requests of its
// client, and the processes that were killed.
const slow = 18 * time.Second

// replicaHeader names the process that served a response.
const replicaHeader = "Chaos-Replica"

// A diary is a bounded list of recent events, oldest first. The zero diary is ready to use.
type diary struct {
	mu    sync.Mutex
	lines []string
}

// maxDiary is the maximum number of lines in a diary.
const maxDiary = 80

func (d *diary) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	d.lines = d.lines[max(len(d.lines)-maxDiary, 0):]
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return "  " + strings.Join(d.lines, "\n  ") + "\n"
}

// exchange performs one HTTP request of a visitor and records it in the visitor's diary.
func (s *strict) exchange(r *http.Request) (*http.Response, error) {
	d, what := &s.visitor.diary, r.Method
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			text, _ := io.ReadAll(io.LimitReader(body, 100)) // it is in memory
			what += " " + string(text)
		}
	}
	session, last := r.Header.Get("Mcp-Session-Id"), strings.Join(r.Header["Last-Event-ID"], "") //nolint:staticcheck // the transport writes it like that
	n := s.requests.Add(1)
	d.notef("#%d %s after %q in %s", n, what, last, session)
	res, err := s.next.RoundTrip(r)
	if err != nil {
		d.notef("#%d failed: %v", n, err)
		return nil, err //nolint:wrapcheck // it only looks
	}
	d.notef("#%d %d from replica %s", n, res.StatusCode, res.Header.Get(replicaHeader))
	res.Body = &notedBody{ReadCloser: res.Body, visitor: s.visitor, number: n}
	return res, nil
}

// notedBody records the events and the end of a stream.
type notedBody struct {
	io.ReadCloser

	visitor *visitor
	number  int64
	ended   bool
}

// Read implements io.Reader.
func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for line := range bytes.Lines(p[:n]) {
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok && !bytes.HasPrefix(id, []byte("0-")) {
			event := string(bytes.TrimSpace(id))
			b.visitor.diary.notef("#%d event %s", b.number, event)
		}
	}
	if err != nil && !b.ended {
		b.ended = true
		b.visitor.diary.notef("#%d ended: %v", b.number, err)
	}
	return n, err //nolint:wrapcheck // it only looks
}

// explain logs what is known about a slow attempt.
func (v *visitor) explain(kind string) {
	var text strings.Builder
	fmt.Fprintf(&text, "chaos: %v: %s takes more than %v\n%v processes:\n%v", v, kind, slow, &v.diary, &v.report.diary)
	_, _ = io.WriteString(v.report.log, text.String()) // for diagnosis only
	v.report.explained.Add(1)
}
