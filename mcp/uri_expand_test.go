// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type issueRef struct {
	Project string  `json:"project"`
	ID      int     `json:"id"`
	State   *string `json:"state,omitempty"`
}

func ExampleExpandURI() {
	const issue = "issue://{project}/{id}{?state}"
	mux := mcp.NewMux("tracker", "v1.0.0", nil)
	mux.Resource(issue, mcp.ResourceFunc(func(_ context.Context, in issueRef) (string, error) {
		return fmt.Sprintf("issue %d of %s", in.ID, in.Project), nil
	}, nil))

	uri, err := mcp.ExpandURI(issue, issueRef{Project: "my project", ID: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(uri)
	mux.ResourceUpdated(uri)
	// Output: issue://my%20project/1
}

func TestExpandURI(t *testing.T) {
	open := "open"
	for _, test := range []struct {
		template string
		vars     any
		want     string // the URI or, with a leading "error: ", a part of the error
	}{
		{"issue://{project}/{id}{?state}", issueRef{"café", 7, &open}, "issue://caf%C3%A9/7?state=open"},
		{"issue://{project}/{id}", map[string]string{"project": "a/b", "id": "1"}, "issue://a%2Fb/1"},
		{"file:///{+path}", map[string]string{"path": "a b/c"}, "file:///a%20b/c"},
		{"HTTP://Example.com/{x}", map[string]any{"x": true}, "http://example.com/true"},
		{"static://a", nil, `error: the variables of "static://a" are a <nil>`},
		{"static://a", struct{}{}, "static://a"},
		{"issue://{project}/{id}", map[string]string{"project": "a"}, `error: the variable "id" of "issue://{project}/{id}" has no value`},
		{"issue://{project}/{id}", map[string]any{"project": "a", "id": nil}, `error: the variable "id" of "issue://{project}/{id}" has no value`},
		{"issue://{project}/{id}", map[string]string{"project": "a", "Id": "1"}, `error: "issue://{project}/{id}" has no variable "Id"; did you mean "id"?`},
		{"notes://{id}", map[string]string{"id": ""}, `error: "notes://" does not match "notes://{id}"`},
		{"notes://{id}", map[string]any{"id": []int{1}}, `error: the value of "id" in "notes://{id}" must be a string, a number or a boolean`},
		{"notes://{id}", map[string]string{"id": "\xff"}, "error: invalid UTF-8"},
		{"notes://{id", struct{}{}, `error: expression is not closed`},
		{"notes://{id}", []int{1}, "error: must be a struct or a map with string keys"},
		{"notes://{id}", make(chan int), "error: chan int"},
	} {
		got, err := mcp.ExpandURI(test.template, test.vars)
		if want, isError := strings.CutPrefix(test.want, "error: "); isError {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ExpandURI(%q, %v) = %q, %v; want an error with %q", test.template, test.vars, got, err, want)
			}
		} else if err != nil || got != test.want {
			t.Errorf("ExpandURI(%q, %v) = %q, %v; want %q", test.template, test.vars, got, err, test.want)
		}
	}
}

// TestFindingV8 checks that an update reaches subscribers in whichever spelling its URI is
// announced, and that a URI that the server does not have is logged once.
func TestFindingV8(t *testing.T) {
	var log bytes.Buffer
	mux := mcp.NewMux("tracker", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Resource("notes://{id}", mcp.ResourceFunc(func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return in.ID, nil
	}, nil))
	child := mcp.NewMux("files", "v1.0.0", nil)
	mux.Mount("files_", child)
	conn := mcptest.Dial(t, mcp.InProcess(mux), nil)
	updates := make(chan string, 8)
	for _, uri := range []string{"notes://caf%C3%A9", "notes://my%20proj"} {
		if _, err := conn.Subscribe(t.Context(), uri, func(uri string) { updates <- uri }); err != nil {
			t.Fatal(err)
		}
	}
	mux.ResourceUpdated("notes://café")
	if got := <-updates; got != "notes://caf%C3%A9" {
		t.Errorf("updated %q", got)
	}
	mux.ResourceUpdated("notes://my proj")
	if got := <-updates; got != "notes://my%20proj" {
		t.Errorf("updated %q", got)
	}
	mux.ResourceUpdated("mount:files_:file:///a")
	mux.ResourceUpdated("notes://") // a directory
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
	for range 3 {
		mux.ResourceUpdated("note://1")
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, `did you mean \"notes://\"?`) {
		t.Errorf("logged %s", got)
	}
}

// TestFindingV8Listed checks that a listed resource that cannot be read is logged once, and that
// any spelling of one that can is not.
func TestFindingV8Listed(t *testing.T) {
	for uri, want := range map[string]string{
		"issue://my proj": "", "issue://my%20proj": "", "mount:files_:file:///a": "",
		"issues://1": `did you mean \"issue://\"?`, "issue://a/b": "matches no registration",
	} {
		var log bytes.Buffer
		mux := mcp.NewMux("tracker", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Mount("files_", mcp.NewMux("files", "v1.0.0", quiet()))
		mux.Resource("issue://{id}", mcp.ResourceFunc(func(context.Context, struct {
			ID string `json:"id"`
		}) (string, error) {
			return "", nil
		}, &mcp.Resource{List: func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) {
			return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: uri, Name: "one"}}}, nil
		}}))
		c := mcptest.Connect(t, mux)
		for range 2 {
			if _, err := c.ListResources(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := log.String(); strings.Count(got, "level=WARN") != min(len(want), 1) || !strings.Contains(got, want) {
			t.Errorf("%s: logged %s, want %s", uri, got, want)
		}
	}
}
