// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
)

// demoFeatures lists the features tried with every client and every server that has the
// tools described at [listed].
var demoFeatures = []feature{
	{name: "lists", try: tryLists},
	{name: "structured content", try: tryAdd},
	{name: "content of every kind", try: tryShow},
	{name: "progress", try: tryProgress},
	{name: "elicitation", try: expects("ask", "hello Ada")},
	{name: "url elicitation", try: expects("visit", "visited"), since: "2025-11-25"},
	{name: "sampling", try: expects("sample", "model: pong to ping")},
	{name: "roots", try: expects("roots", "file:///psi")},
	{name: "logging", try: tryLog},
	{name: "tool errors", try: tryFail},
	{name: "unknown names", try: tryUnknown},
	{name: "unknown resources", try: tryUnknownResource},
	{name: "prompts", try: tryPrompt},
	{name: "reading", try: tryRead},
	{name: "prompt completion", try: completes("greet", "name", "A", "Ada", "Alan")},
	{name: "template completion", try: completes("demo://item/{id}", "id", "1", "10", "11")},
	{name: "cancellation", try: tryCancel},
	{name: "many at once", try: tryMany},
	{name: "list changes", try: tryListChanges},
	{name: "resource updates", try: tryUpdates},
}

func eraOf(version string) string {
	if slices.Contains(mcp.ModernVersions(), version) {
		return "modern"
	}
	return "legacy"
}

func tryLists(ctx context.Context, s *session) error {
	got, err := s.names(ctx)
	if err == nil && !slices.Equal(got, listed()) {
		err = fmt.Errorf("listed %q, want %q", got, listed())
	}
	return err
}

func tryAdd(ctx context.Context, s *session) error {
	res, err := s.mustCall(ctx, "add", addIn{2, 3})
	if err != nil {
		return err
	}
	// Older revisions have structured content only as text.
	if s.version() >= "2025-06-18" && res.Structured["sum"] != 5.0 || res.text() != `{"sum":5}` {
		return fmt.Errorf("got %+v", res)
	}
	return nil
}

func tryShow(ctx context.Context, s *session) error {
	res, err := s.mustCall(ctx, "show", nil)
	if err != nil {
		return err
	}
	want := []string{"text", "image", "audio", "resource_link", "resource"}
	switch {
	case s.version() < "2025-06-18" && !slices.Equal(res.kinds(), want):
		return nil // how servers represent content unknown to the client is up to them
	case !slices.Equal(res.kinds(), want):
		return fmt.Errorf("got %q, want %q", res.kinds(), want)
	case res.text() != "all", string(res.Content[1].Data) != "image", string(res.Content[2].Data) != "audio",
		res.Content[3].URI != "demo://readme", string(res.Content[4].Resource.Blob) != "blob":
		return fmt.Errorf("got %+v", res)
	}
	return nil
}

func tryProgress(ctx context.Context, s *session) error {
	progress := make(chan float64, 100)
	res, err := s.succeeds(s.call(ctx, "count", countIn{3}, func(done float64) { put(progress, done) }))
	if err != nil || res.text() != "counted" {
		return fmt.Errorf("%+v, %w", res, err)
	}
	var got []float64
	for range 3 {
		done, err := take(ctx, progress)
		if err != nil {
			return err
		}
		got = append(got, done)
	}
	slices.Sort(got) // some clients start a goroutine for each notification
	if !slices.Equal(got, []float64{1, 2, 3}) {
		return fmt.Errorf("progress %v", got)
	}
	return nil
}

// expects returns a function that calls a tool without arguments and expects a text.
func expects(tool, want string) func(ctx context.Context, s *session) error {
	return func(ctx context.Context, s *session) error {
		res, err := s.mustCall(ctx, tool, nil)
		if err == nil && res.text() != want {
			err = fmt.Errorf("got %q, want %q", res.text(), want)
		}
		return err
	}
}

func tryLog(ctx context.Context, s *session) error {
	if _, err := s.mustCall(ctx, "log", nil); err != nil {
		return err
	}
	got, err := take(ctx, s.told.logged)
	if err == nil && got != "info: logged" {
		err = fmt.Errorf("told %q", got)
	}
	return err
}

func tryFail(ctx context.Context, s *session) error {
	res, err := s.call(ctx, "fail", nil, nil)
	if err == nil && (!res.IsError || res.text() != errBroken.Error()) {
		err = fmt.Errorf("got %+v", res)
	}
	return err
}

// refused checks that err has the code, if the client reports codes.
func (s *session) refused(err error, code int) error {
	if err == nil {
		return errors.New("no error")
	}
	if got := s.code(err); got != code && got != 0 {
		return fmt.Errorf("%w has the code %d, want %d", err, got, code)
	}
	return nil
}

func tryUnknown(ctx context.Context, s *session) error {
	_, tool := s.call(ctx, "nonesuch", nil, nil)
	_, prompt := s.prompt(ctx, "nonesuch", nil)
	return errors.Join(s.refused(tool, mcp.CodeInvalidParams), s.refused(prompt, mcp.CodeInvalidParams))
}

// tryUnknownResource reads an unknown resource. The legacy era has a separate code for it,
// which psi's client does not pass on.
func tryUnknownResource(ctx context.Context, s *session) error {
	_, err := s.read(ctx, "demo://nonesuch")
	if _, ours := s.client.(*psiClient); !ours && eraOf(s.version()) == "legacy" {
		return s.refused(err, revision.CodeResourceNotFound)
	}
	return s.refused(err, mcp.CodeInvalidParams)
}

func tryPrompt(ctx context.Context, s *session) error {
	got, err := s.prompt(ctx, "greet", map[string]string{"name": "Ada"})
	if err == nil && got != "Greet Ada" {
		err = fmt.Errorf("got %q", got)
	}
	return err
}

func tryRead(ctx context.Context, s *session) error {
	for uri, want := range map[string]string{"demo://readme": "read me", "demo://item/7": "item 7"} {
		if got, err := s.read(ctx, uri); err != nil || got != want {
			return fmt.Errorf("%s: %q, %w", uri, got, err)
		}
	}
	return nil
}

func completes(ref, argument, value string, want ...string) func(ctx context.Context, s *session) error {
	return func(ctx context.Context, s *session) error {
		got, err := s.complete(ctx, ref, argument, value)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	}
}

// tryCancel cancels a call in progress and checks that the server noticed.
func tryCancel(ctx context.Context, s *session) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.call(call, "wait", nil, nil)
		ended <- err
	}()
	if _, err := s.mustCall(ctx, "waits", nil); err != nil {
		return err
	}
	cancel()
	if err, late := take(ctx, ended); err == nil || late != nil {
		return fmt.Errorf("the call ended with %w, %w", err, late)
	}
	_, err := s.mustCall(ctx, "stopped", nil)
	return err
}

func tryMany(ctx context.Context, s *session) error {
	const calls = 20
	failed := make(chan error, calls)
	for i := range calls {
		go func() {
			res, err := s.mustCall(ctx, "add", addIn{i, 1})
			if err == nil && res.text() != fmt.Sprintf(`{"sum":%d}`, i+1) {
				err = fmt.Errorf("%d and 1: %s", i, res.text())
			}
			failed <- err
		}()
	}
	var all error
	for range calls {
		all = errors.Join(all, <-failed)
	}
	return all
}

func tryListChanges(ctx context.Context, s *session) error {
	return s.repeats(ctx, "", "grow", nil, func(ctx context.Context) error {
		_, err := take(ctx, s.told.tools)
		return err
	})
}

func tryUpdates(ctx context.Context, s *session) error {
	return s.repeats(ctx, "demo://readme", "touch", nil, func(ctx context.Context) error {
		uri, err := take(ctx, s.told.updated)
		if err == nil && uri != "demo://readme" {
			err = fmt.Errorf("told of %q", uri)
		}
		return err
	})
}

// repeats listens, and calls a tool until its effect is notified. Clients that are
// listening when listen returns need one call; others open their streams later and miss
// earlier notifications.
func (s *session) repeats(ctx context.Context, uri, tool string, args any, heard func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.listen(ctx, uri); err != nil {
		return err
	}
	for {
		if _, err := s.mustCall(ctx, tool, args); err != nil {
			return err
		}
		limit := featureLimit
		if s.told.late {
			limit = 200 * time.Millisecond
		}
		wait, done := context.WithTimeout(ctx, limit)
		err := heard(wait)
		done()
		if err == nil || ctx.Err() != nil || wait.Err() == nil {
			return err
		}
	}
}
