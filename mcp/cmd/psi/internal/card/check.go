// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package card

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/jsonschema"
)

// maxSize bounds the length of what is checked.
const maxSize = 1 << 20

// schema returns what [Server] says.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	raw, err := jsonschema.For[Server]()
	if err != nil {
		panic(err)
	}
	s, err := jsonschema.Compile(raw, &jsonschema.Options{MaxInputBytes: maxSize})
	if err != nil {
		panic(err)
	}
	return s
})

// Check checks the content of a server.json, whose name in the findings is file. It also
// returns the content, or nil if it has not the shape of one.
func Check(ctx context.Context, file string, data []byte) (*Server, []lint.Finding) {
	c := &checker{file: file}
	switch err, problems := schema().Validate(ctx, data), (*jsonschema.ValidationError)(nil); {
	case errors.As(err, &problems):
		for _, p := range problems.Problems {
			c.problem(p)
		}
		if problems.More > 0 {
			c.report(lint.Error, "", "schema", fmt.Sprintf("%d more problems", problems.More), "correct the others first")
		}
	case err != nil:
		c.report(lint.Error, "", "schema", err.Error(), "make it smaller")
		return nil, c.found
	}
	var s Server
	if len(data) > maxSize || jsonschema.Unmarshal(data, &s) != nil {
		return nil, c.found
	}
	c.server(&s)
	for i := range s.Packages {
		c.pkg(fmt.Sprintf("/packages/%d", i), &s.Packages[i])
	}
	for i := range s.Remotes {
		c.remote(fmt.Sprintf("/remotes/%d", i), &s.Remotes[i])
	}
	return &s, c.found
}

// A checker collects findings.
type checker struct {
	file  string
	found []lint.Finding
}

func (c *checker) report(s lint.Severity, pointer, rule, message, advice string) {
	c.found = append(c.found, lint.Finding{Severity: s, Kind: c.file, Pointer: pointer, Rule: rule, Message: message, Advice: advice})
}

// problem reports what does not match the schema.
func (c *checker) problem(p jsonschema.Problem) {
	advice := "correct it"
	switch {
	case p.Nearest != "":
		advice = fmt.Sprintf("did you mean %q?", p.Nearest)
	case p.Keyword == "additionalProperties":
		advice = "remove it"
	case len(p.Allowed) > 0:
		advice = "write one of " + strings.Join(p.Allowed, ", ")
	case p.Keyword == "required":
		advice = "add it"
	}
	if p.Keyword == "additionalProperties" {
		// The schema allows other members, but registries refuse or drop them.
		c.report(lint.Warning, p.Pointer, "unknown", "the format of "+Date+" has no such member, so that a registry refuses or drops it", advice)
		return
	}
	c.report(lint.Error, p.Pointer, "schema", fmt.Sprintf("expected %s, got %s", p.Expected, p.Got), advice)
}

var (
	nameFormat = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9])/[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]$`)
	// repositories are the forms of URLs that a source has.
	repositories = map[string]*regexp.Regexp{
		"github": regexp.MustCompile(`^https?://(www\.)?github\.com(/[\w.-]+){2}/?$`),
		"gitlab": regexp.MustCompile(`^https?://(www\.)?gitlab\.com(/[\w.-]+){2,}/?$`),
	}
	folder = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*$`)
)

// publisherMeta is the only member of _meta that registries keep, and maxMeta how long it may be.
const (
	publisherMeta = "io.modelcontextprotocol.registry/publisher-provided"
	maxMeta       = 4096
)

// server checks everything but packages and remotes.
func (c *checker) server(s *Server) {
	c.schema(s.Schema)
	switch m := nameFormat.FindStringSubmatch(s.Name); {
	case len(s.Name) < 3: // the schema says so
	case m == nil:
		c.report(lint.Error, "/name", "name", fmt.Sprintf("%q is not a name in a registry", s.Name),
			"write NAMESPACE/NAME with letters, digits, dots and dashes, such as io.github.ada/counter")
	case !strings.Contains(m[1], "."):
		c.report(lint.Error, "/name", "namespace", fmt.Sprintf("nobody can prove to own %q", m[1]),
			"write the domain of the owner in reverse, such as com.example, or io.github. and the name of the owner")
	case m[1] == "com.example" || strings.HasPrefix(m[1], "com.example."):
		c.report(lint.Warning, "/name", "namespace", "example.com is a placeholder", "write your own domain in reverse, or io.github. and your name")
	}
	c.version("/version", s.Version)
	if s.Title != "" && strings.TrimSpace(s.Title) == "" {
		c.report(lint.Error, "/title", "title", "the title is blank", "write a title, or none")
	}
	if s.WebsiteURL != "" {
		c.isHTTPS("/websiteUrl", s.WebsiteURL)
	}
	for i, icon := range s.Icons {
		c.isHTTPS(fmt.Sprintf("/icons/%d/src", i), icon.Src)
	}
	if s.Repository != nil {
		c.repository(s.Repository)
	}
	if len(s.Packages) == 0 && len(s.Remotes) == 0 {
		c.report(lint.Warning, "", "nothing", "it has neither packages nor remotes, so that no host can use the server", "add one")
	}
	for name, value := range inOrder(s.Meta) {
		switch pointer := child("/_meta", name); {
		case name != publisherMeta:
			c.report(lint.Warning, pointer, "meta", "registries drop it", fmt.Sprintf("move it into %q", publisherMeta))
		case len(value) > maxMeta:
			c.report(lint.Error, pointer, "meta", fmt.Sprintf("it has %d bytes of %d", len(value), maxMeta), "shorten it")
		}
	}
}

// schema checks the version of the format.
func (c *checker) schema(id string) {
	date, isPrefixed := strings.CutPrefix(id, schemaPrefix)
	date, isSuffixed := strings.CutSuffix(date, schemaSuffix)
	advice := fmt.Sprintf("write %q", Schema)
	switch {
	case id == "":
		c.report(lint.Error, "/$schema", "format", "registries refuse a card that does not name its format", "add it: "+advice)
	case !isPrefixed || !isSuffixed:
		c.report(lint.Error, "/$schema", "format", fmt.Sprintf("%q is not the format of a server.json", id), advice)
	case date == "draft" || date > Date:
		c.report(lint.Note, "/$schema", "format", fmt.Sprintf("psi checks the rules of %s, and does not know those of %s", Date, date), "look up what has changed")
	case date < Date:
		c.report(lint.Warning, "/$schema", "format", fmt.Sprintf("%s is older than %s, and some registries refuse it", date, Date), advice)
	}
}

var (
	semantic = regexp.MustCompile(`^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z.-]+)?$`)
	// A range begins with an operator, joins versions, or has a wildcard in place of a number.
	versionRange = regexp.MustCompile(`^\s*[\^~<>=]|\|\||\s-\s|^v?(\d+\.)*[xX*](\.[\dxX*]+)*$`)
)

// version checks the version of the server or of a package.
func (c *checker) version(pointer, version string) {
	switch {
	case version == "": // the schema says what is required
	case version == "latest" || versionRange.MatchString(version):
		c.report(lint.Error, pointer, "version", fmt.Sprintf("%q is not one version", version), "write the version that is published")
	case pointer == "/version" && !semantic.MatchString(version):
		c.report(lint.Warning, pointer, "version", fmt.Sprintf("%q is not a semantic version, so that registries take it for the latest, whatever comes later", version),
			"write one such as 1.2.3, without a v")
	}
}

func (c *checker) repository(r *Repository) {
	form, isKnown := repositories[r.Source]
	switch {
	case !isKnown:
		c.report(lint.Warning, "/repository/source", "repository", fmt.Sprintf("the official registry does not know %q", r.Source), "write github or gitlab, or leave the repository out")
	case !form.MatchString(r.URL):
		c.report(lint.Error, "/repository/url", "repository", fmt.Sprintf("%q is not a repository at %s", r.URL, r.Source), "write the address of the repository itself")
	}
	isDots := func(part string) bool { return part == "." || part == ".." }
	if r.Subfolder != "" && (!folder.MatchString(r.Subfolder) || slices.ContainsFunc(strings.Split(r.Subfolder, "/"), isDots)) {
		c.report(lint.Error, "/repository/subfolder", "repository", fmt.Sprintf("%q is not a path below the repository", r.Subfolder), "write one such as cmd/counter")
	}
}

// isHTTPS checks the URL of a page or an image.
func (c *checker) isHTTPS(pointer, text string) {
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" {
		c.report(lint.Error, pointer, "url", fmt.Sprintf("%q is not an address", text), "write one that begins with https://")
	}
}

// child returns the JSON pointer to a member of the object at a pointer.
func child(at, name string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// inOrder iterates over a map in the order of its keys, so that findings have an order.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
