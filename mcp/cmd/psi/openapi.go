// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/openapi"
)

// An apiServer serves the operations of an HTTP API as tools.
type apiServer struct {
	serving

	baseURL             string
	headers, tags, only listFlag
}

func serveCommand() *command {
	s := &apiServer{}
	c := &command{
		name: "serve", usage: "FILE", summary: "serve an HTTP API with an OpenAPI document as tools",
		help: `serve makes a tool of each operation that an OpenAPI document describes (2.0 or 3.x, JSON or YAML),
and calls the API at -base-url: servers that the document names are not called. It serves on standard
input and output, for a host that starts it, or with -http at an address. -tag and -only select
operations: models choose better among few.

Credentials are in -header, where $NAME is a variable of psi's environment: in single quotes, the
shell leaves it alone, and the credentials do not appear among the arguments of the process.

At an address that other machines can reach, callers need a bearer token: the value of the
environment variable ` + tokenVariable + `, which has at least 16 bytes.`,
		example: "$ psi serve openapi.yaml -base-url https://api.example.com/v1 -tag orders -only 'GET *' -http 127.0.0.1:0\n",
		flags: func(f *flag.FlagSet) {
			f.StringVar(&s.baseURL, "base-url", "", "call the API at this `URL`, to which the paths of the document are appended")
			f.Var(&s.headers, "header", "send this header, `\"Name: value\"`, to the API; $NAME in it is a variable of the environment; may be repeated")
			f.Var(&s.tags, "tag", "serve only operations with this `tag`; may be repeated")
			f.Var(&s.only, "only", "serve only operations whose name, or method and path, match this `pattern`, such as get_* or 'GET /orders*'; may be repeated")
			f.StringVar(&s.addr, "http", "", "serve at http://`address`/mcp instead of standard input and output")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) != 1 {
			return c.wrongWords("want the file of an OpenAPI document")
		}
		s.stdio = s.addr == ""
		if err := cmp.Or(checkPatterns(c.name, "-only", s.only), s.check(c.name)); err != nil {
			return err
		}
		mux, err := s.mux(e, words[0])
		if err != nil {
			return err
		}
		return s.serve(ctx, e, mux)
	}
	return c
}

// maxDocument is how many bytes of a document are read. One that is as long is too long.
const maxDocument = 64 << 20

// mux returns a server with the operations of a document.
func (s *apiServer) mux(e *env, file string) (*mcp.Mux, error) {
	if isURL(file) {
		return nil, usagef("serve: want a file: download %s, and read it, because others can change it", file)
	}
	document, err := readDocument(file)
	if err != nil {
		return nil, &usageError{err}
	}
	header, err := s.header(e)
	if err != nil {
		return nil, err
	}
	selected := 0
	var found []*openapi.Operation
	api, err := openapi.New(document, &openapi.Options{
		BaseURL: s.baseURL,
		Select: func(op *openapi.Operation) bool {
			isSelected := s.selects(op)
			if isSelected {
				selected++
			}
			found = append(found, op)
			return isSelected
		},
		Authorize: func(_ context.Context, r *http.Request) error {
			maps.Copy(r.Header, header)
			return nil
		},
	})
	if err != nil {
		return nil, usagef("serve: %s: %w", file, err)
	}
	s.warn(e, api.Omitted())
	if selected == 0 {
		return nil, s.nothingSelected(file, found)
	}
	version, _ := buildVersion()
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	mux := mcp.NewMux(cmp.Or(name, "api"), version, &mcp.MuxOptions{Logger: e.log, NoLint: true}) // who runs psi did not write the document
	if err := api.Register(mux); err != nil {
		return nil, usagef("serve: %s: %w", file, err)
	}
	e.term.printf("%s of %s\n", plural(selected, "operation"), printable.Line(file))
	return mux, nil
}

// maxChoices is how many tags or operations an error names.
const maxChoices = 10

// nothingSelected returns the error for flags that select none of a document's operations.
func (s *apiServer) nothingSelected(file string, found []*openapi.Operation) error {
	kind, names := "operations", []string{}
	for _, op := range found {
		if len(s.tags) > 0 {
			kind, names = "tags", append(names, op.Tags...)
		} else {
			names = append(names, op.Method+" "+op.Path)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxChoices {
		names = append(names[:maxChoices], "…")
	}
	return usagef("serve: %s: no operation is selected; the %s of the document: %s", file, kind, cmp.Or(printable.Line(strings.Join(names, ", ")), "none"))
}

// header returns the headers of the requests to the API, with variables of the environment.
func (s *apiServer) header(e *env) (http.Header, error) {
	switch {
	case s.baseURL == "":
		return nil, usagef("serve: which API? give its -base-url; the servers in the document are not called")
	case len(s.headers) > 0 && isExposed(s.baseURL):
		e.log.Warn("headers are sent without encryption", "base-url", s.baseURL)
	}
	missing := ""
	expanded := make([]string, len(s.headers))
	for i, line := range s.headers {
		expanded[i] = os.Expand(line, func(name string) string {
			value, ok := os.LookupEnv(name)
			if name == "$" {
				return "$"
			}
			if !ok {
				missing = name
			}
			return value
		})
	}
	if missing != "" {
		return nil, usagef("serve: -header: the environment does not have $%s; write $$ for a $", missing)
	}
	header, err := parseHeaders(expanded)
	if err != nil {
		return nil, usagef("serve: a -header is not of the form \"Name: value\"") // it may be secret
	}
	return header, nil
}

// isExposed reports whether others on the network can read what is sent to a URL.
func isExposed(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "http" && !network.IsLoopback(u.Hostname())
}

// selects reports whether the flags select an operation.
func (s *apiServer) selects(op *openapi.Operation) bool {
	return (len(s.tags) == 0 || slices.ContainsFunc(s.tags, op.HasTag)) &&
		(len(s.only) == 0 || matchesAny(s.only, op.Tool.Name) || matchesAny(s.only, op.ID) || matchesAny(s.only, op.Method+" "+op.Path))
}

// maxOmissions is how many operations that are left out are named.
const maxOmissions = 10

func (s *apiServer) warn(e *env, omitted []openapi.Omission) {
	for _, o := range omitted[:min(len(omitted), maxOmissions)] {
		e.log.Warn("an operation is left out", "operation", o.Operation, "reason", o.Reason)
	}
	if more := len(omitted) - maxOmissions; more > 0 {
		e.log.Warn("more operations are left out", "number", more)
	}
}

func readDocument(file string) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the user's own words
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDocument))
}
