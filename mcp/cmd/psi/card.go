// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/card"
)

// A cardWriter writes or checks the server.json of a server.
type cardWriter struct {
	name, title, description, version, website, repository string
	packages, remotes, variables                           listFlag

	check, output string // files
}

func cardCommand() *command {
	w := &cardWriter{}
	c := &command{
		name: "card", usage: "[SERVER]", summary: "write the server.json of a server for registries, or check it", connects: true,
		help: `card writes the server.json with which a server is published in the MCP Registry: what the server says
of itself, and what only its owner knows, which is in the flags. A public URL of the server becomes a
remote; the headers of -header are listed without their values. What a registry would refuse is not
written.

With -check, it checks a server.json instead, and with a SERVER also that the version in it is that of
the server. The findings are as in psi lint, and the exit code is 1 if there are errors. Whether the
packages exist and are yours is checked by the registry.`,
		example: `$ psi card -name io.github.ada/kitchen -version 1.2.0 -description 'Adds numbers.' -package oci:ghcr.io/ada/kitchen:1.2.0 -env TOKEN -- ./server
{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.ada/kitchen",
  "description": "Adds numbers.",
  "version": "1.2.0",
  "packages": [
    {
      "registryType": "oci",
      "identifier": "ghcr.io/ada/kitchen:1.2.0",
      "transport": {
        "type": "stdio"
      },
      "environmentVariables": [
        {
          "name": "TOKEN",
          "isRequired": true,
          "isSecret": true
        }
      ]
    }
  ]
}
$ psi card -check server.json
`,
		flags: func(f *flag.FlagSet) {
			f.StringVar(&w.check, "check", "", "check this `file` instead of writing one")
			f.StringVar(&w.output, "o", "", "write to this `file` instead of the standard output")
			f.StringVar(&w.name, "name", "", "the `name` in the registry, such as io.github.ada/counter")
			f.StringVar(&w.title, "title", "", "the `title` for users (default: that of the server)")
			f.StringVar(&w.description, "description", "", "what the server is good for, in at most 100 `characters` (default: what the server says)")
			f.StringVar(&w.version, "version", "", "the `version` that is published (default: that of the server)")
			f.StringVar(&w.website, "website", "", "the `URL` of a page about the server (default: that of the server)")
			f.StringVar(&w.repository, "repository", "", "the `URL` of the source code at GitHub or GitLab")
			f.Var(&w.packages, "package", "a `TYPE:NAME` to start the server from, such as npm:@ada/counter@1.2.0, pypi:counter, oci:ghcr.io/ada/counter:1.2.0 or mcpb:URL#sha256=HEX; may be repeated")
			f.Var(&w.remotes, "remote", "the public `URL` of a running server; may be repeated")
			f.Var(&w.variables, "env", "a `NAME` of the environment that the packages need, or NAME=default; may be repeated")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) > 1 {
			return c.wrongWords("what is %q?", words[1])
		}
		if w.check != "" {
			return w.checkFile(ctx, e, c, words)
		}
		conn, _, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		s, err := w.server(e, conn.ServerInfo(), words)
		if err != nil {
			return err
		}
		return w.write(ctx, e, s)
	}
	return c
}

// checkFile checks a server.json, and compares it with the server if there is one.
func (w *cardWriter) checkFile(ctx context.Context, e *env, c *command, words []string) error {
	data, err := readDocument(w.check)
	if err != nil {
		return &usageError{err}
	}
	s, found := card.Check(ctx, w.check, data)
	if s != nil && (len(words) > 0 || e.server != nil || e.given != nil) {
		conn, _, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		if info := conn.ServerInfo(); info != nil && publicVersion(info.Version) != publicVersion(s.Version) {
			found = append(found, lint.Finding{
				Severity: lint.Error, Kind: w.check, Pointer: "/version", Rule: "version",
				Message: fmt.Sprintf("it says %q, and the server %q", s.Version, info.Version), Advice: "write the version that is published, in both places",
			})
		}
	}
	return e.writeFindings("the card has", found)
}

// publicVersion returns a version without the v that Go puts before it, and semantic versioning
// does not know.
func publicVersion(version string) string {
	if len(version) > 1 && version[0] == 'v' && '0' <= version[1] && version[1] <= '9' {
		return version[1:]
	}
	return version
}

// write writes a card that a registry accepts.
func (w *cardWriter) write(ctx context.Context, e *env, s *card.Server) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return err
	}
	_, found := card.Check(ctx, "server.json", text.Bytes())
	for _, f := range found {
		e.term.printf("%s\n", f)
	}
	if slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Severity == lint.Error }) {
		return usagef("card: a registry would refuse it; psi help card lists the flags")
	}
	if w.output != "" {
		return os.WriteFile(w.output, text.Bytes(), 0o666) //nolint:gosec // what is published is for everyone, within the umask
	}
	_, err := e.stdout.Write(printable.JSON(text.Bytes()))
	return err
}

// server returns the card of a server. The words are those that named it.
func (w *cardWriter) server(e *env, info *mcp.Implementation, words []string) (*card.Server, error) {
	info = cmp.Or(info, &mcp.Implementation{})
	s := &card.Server{
		Schema: card.Schema, Name: w.name, Title: cmp.Or(w.title, info.Title), Description: cmp.Or(w.description, info.Description),
		Version: cmp.Or(w.version, publicVersion(info.Version)), WebsiteURL: cmp.Or(w.website, info.WebsiteURL),
	}
	if s.Name == "" && strings.Contains(info.Name, "/") {
		s.Name = info.Name
	}
	if s.Name == "" {
		return nil, usagef("card: which name in the registry? give -name, such as io.github.ada/%s", cmp.Or(info.Name, "counter"))
	}
	if s.Description == "" {
		return nil, usagef("card: the server does not say what it is good for; give -description, or set Description of its implementation")
	}
	for _, icon := range info.Icons {
		if strings.HasPrefix(icon.Src, "https://") { // no other is published
			s.Icons = append(s.Icons, card.Icon(icon))
		}
	}
	if w.repository != "" {
		u, err := url.Parse(w.repository)
		if err != nil {
			return nil, usagef("card: -repository %q is not a URL", w.repository)
		}
		source, _, _ := strings.Cut(strings.TrimPrefix(u.Hostname(), "www."), ".")
		s.Repository = &card.Repository{URL: w.repository, Source: source}
	}
	var err error
	if s.Remotes, err = w.remotesOf(e, words); err != nil {
		return nil, err
	}
	for _, text := range w.packages {
		p, err := w.pkg(text, s.Version)
		if err != nil {
			return nil, err
		}
		s.Packages = append(s.Packages, *p)
	}
	if w.variables != nil && s.Packages == nil {
		return nil, usagef("card: -env is for packages; give a -package")
	}
	return s, nil
}

// remotesOf returns the servers at the addresses of -remote, or at the one that psi has connected
// to if it is public.
func (w *cardWriter) remotesOf(e *env, words []string) ([]card.Remote, error) {
	addresses := []string(w.remotes)
	if addresses == nil && e.server == nil && len(words) > 0 && isURL(words[0]) {
		u, err := url.Parse(words[0])
		switch {
		case err != nil || u.Scheme != "https" || card.IsPrivate(u.Hostname()):
		case u.RawQuery != "" || u.User != nil:
			return nil, usagef("card: the URL contains more than an address, which may be secret; give -remote with what is to be published")
		default:
			addresses = words[:1]
		}
	}
	header, err := parseHeaders(e.client.headers)
	if err != nil {
		return nil, err
	}
	var remotes []card.Remote
	for _, address := range addresses {
		r := card.Remote{Type: card.HTTP, URL: address}
		for _, name := range slices.Sorted(maps.Keys(header)) {
			r.Headers = append(r.Headers, card.Variable{Name: name, Input: card.Input{IsRequired: true, IsSecret: redact.IsSecret(name)}})
		}
		remotes = append(remotes, r)
	}
	return remotes, nil
}

// packageVersion matches the version after the name of a package, which may itself begin with @.
var packageVersion = regexp.MustCompile(`^(.+)@([^@/:]+)$`)

// pkg returns the package of a -package flag. A package of a registry that keeps versions has
// that of the server unless it says another one.
func (w *cardWriter) pkg(text, version string) (*card.Package, error) {
	registry, name, ok := strings.Cut(text, ":")
	if !ok || registry == "" || name == "" || strings.HasPrefix(name, "//") {
		return nil, usagef("card: -package %q is not TYPE:NAME, such as oci:ghcr.io/ada/counter:1.2.0", text)
	}
	p := &card.Package{RegistryType: registry, Identifier: name, Transport: card.Transport{Type: card.Stdio}}
	switch registry {
	case card.OCI: // the tag is in the name
	case card.MCPB:
		p.Identifier, p.FileSHA256, _ = strings.Cut(name, "#sha256=")
	default:
		p.Version = version
		if m := packageVersion.FindStringSubmatch(name); m != nil {
			p.Identifier, p.Version = m[1], m[2]
		}
	}
	for _, pair := range w.variables {
		name, value, hasDefault := strings.Cut(pair, "=")
		if name == "" {
			return nil, usagef("card: -env wants NAME or NAME=default")
		}
		p.EnvironmentVariables = append(p.EnvironmentVariables, card.Variable{
			Name: name, Input: card.Input{IsRequired: !hasDefault, IsSecret: redact.IsSecret(name), Default: value},
		})
	}
	return p, nil
}
