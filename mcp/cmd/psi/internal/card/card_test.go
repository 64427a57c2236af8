// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package card_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/card"
)

// base returns a card with all that a card can have, and without findings.
func base() *card.Server {
	secret := card.Input{IsRequired: true, IsSecret: true}
	return &card.Server{
		Schema: card.Schema, Name: "io.github.ada/counter", Title: "Counter", Description: "Counts words.", Version: "1.2.0", WebsiteURL: "https://example.org/",
		Icons:      []card.Icon{{Src: "https://example.org/counter.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: "light"}},
		Repository: &card.Repository{URL: "https://github.com/ada/counter", Source: "github", Subfolder: "cmd/counter"},
		Packages: []card.Package{
			{RegistryType: card.NPM, RegistryBaseURL: "https://registry.npmjs.org/", Identifier: "@ada/counter", Version: "1.2.0", Transport: card.Transport{Type: card.Stdio}},
			{
				RegistryType: card.OCI, Identifier: "ghcr.io/ada/counter:1.2.0", RuntimeHint: "docker",
				RuntimeArguments:     []card.Argument{{Type: "named", Name: "-v", Input: card.Input{Value: "{data}:/data", Format: "string"}, Variables: map[string]card.Input{"data": {Format: "filepath"}}}},
				PackageArguments:     []card.Argument{{Type: "named", Name: "-http", Input: card.Input{Value: ":{port}"}, Variables: map[string]card.Input{"port": {Default: "80"}}}, {Type: "positional", ValueHint: "port"}},
				EnvironmentVariables: []card.Variable{{Name: "API_KEY", Input: secret}, {Name: "LEVEL", Input: card.Input{Default: "info", Choices: []string{"info", "debug"}}}},
				Transport:            card.Transport{Type: card.HTTP, URL: "http://127.0.0.1:{port}/{LEVEL}", Headers: []card.Variable{{Name: "X-Level", Input: card.Input{Value: "1"}}}},
			},
			{RegistryType: card.MCPB, Identifier: "https://github.com/ada/counter/releases/download/v1.2.0/counter.mcpb", FileSHA256: strings.Repeat("0a", 32), Transport: card.Transport{Type: card.Stdio}},
		},
		Remotes: []card.Remote{{
			Type: card.HTTP, URL: "https://{tenant}.example.org/mcp?api_key={key}", Variables: map[string]card.Input{"tenant": {}, "key": secret},
			Headers: []card.Variable{{Name: "Authorization", Input: card.Input{Value: "Bearer {token}"}, Variables: map[string]card.Input{"token": secret}}},
		}},
		Meta: map[string]json.RawMessage{"io.modelcontextprotocol.registry/publisher-provided": json.RawMessage(`{"tool":"psi"}`)},
	}
}

// check returns the findings about a card, each as "SEVERITY POINTER RULE".
func check(t *testing.T, data []byte) []string {
	t.Helper()
	s, found := card.Check(t.Context(), "server.json", data)
	lines := []string{}
	for _, f := range found {
		if f.Message == "" || f.Advice == "" || f.Kind != "server.json" {
			t.Errorf("a finding does not say enough: %+v", f)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", f.Severity, f.Pointer, f.Rule))
	}
	if s == nil && len(found) == 0 {
		t.Error("nothing is wrong, and there is no card")
	}
	return lines
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(s *card.Server)
		want   string // findings; "" if there are none
	}{
		{"everything is right", func(*card.Server) {}, ""},
		{"no format", func(s *card.Server) { s.Schema = "" }, "error /$schema format"},
		{"another document", func(s *card.Server) { s.Schema = "https://json-schema.org/draft/2020-12/schema" }, "error /$schema format"},
		{"an old format", func(s *card.Server) { s.Schema = strings.Replace(s.Schema, card.Date, "2025-09-16", 1) }, "warning /$schema format"},
		{"a new format", func(s *card.Server) { s.Schema = strings.Replace(s.Schema, card.Date, "2026-12-01", 1) }, "note /$schema format"},
		{"a draft", func(s *card.Server) { s.Schema = strings.Replace(s.Schema, card.Date, "draft", 1) }, "note /$schema format"},
		{"another file of the format", func(s *card.Server) { s.Schema = strings.Replace(s.Schema, "server.schema", "other.schema", 1) }, "error /$schema format"},
		{"a short name", func(s *card.Server) { s.Name = "a/" }, "error /name schema"},
		{"a long name", func(s *card.Server) { s.Name = "a.b/" + strings.Repeat("c", 200) }, "error /name schema"},
		{"no namespace", func(s *card.Server) { s.Name = "counter" }, "error /name name"},
		{"two slashes", func(s *card.Server) { s.Name = "io.github.ada/tools/counter" }, "error /name name"},
		{"a dash at the end", func(s *card.Server) { s.Name = "io.github.ada/counter-" }, "error /name name"},
		{"no domain", func(s *card.Server) { s.Name = "ada/counter" }, "error /name namespace"},
		{"a placeholder", func(s *card.Server) { s.Name = "com.example.tools/counter" }, "warning /name namespace"},
		{"no version", func(s *card.Server) { s.Version = "" }, "error /version schema"},
		{"latest", func(s *card.Server) { s.Version = "latest" }, "error /version version"},
		{"no semantic version", func(s *card.Server) { s.Version = "v1.2.0" }, "warning /version version"},
		{"a version of a date", func(s *card.Server) { s.Version = "2025.06.18" }, "warning /version version"},
		{"a version before another", func(s *card.Server) { s.Version = "1.0.0-beta.1+build" }, ""},
		{"a blank title", func(s *card.Server) { s.Title = " " }, "error /title title"},
		{"a long description", func(s *card.Server) { s.Description = strings.Repeat("ö", 101) }, "error /description schema"},
		{"a description of 100 characters", func(s *card.Server) { s.Description = strings.Repeat("ö", 100) }, ""},
		{"a page without encryption", func(s *card.Server) { s.WebsiteURL = "http://example.org" }, "error /websiteUrl url"},
		{"an image in the card", func(s *card.Server) { s.Icons[0].Src = "data:image/png;base64,AA==" }, "error /icons/0/src url"},
		{"an unknown kind of image", func(s *card.Server) { s.Icons[0].MIMEType = "image/gif" }, "error /icons/0/mimeType schema"},
		{"a size in words", func(s *card.Server) { s.Icons[0].Sizes = []string{"big"} }, "error /icons/0/sizes/0 schema"},
		{"another forge", func(s *card.Server) { s.Repository.Source = "codeberg" }, "warning /repository/source repository"},
		{"a page of a repository", func(s *card.Server) { s.Repository.URL += "/tree/main" }, "error /repository/url repository"},
		{"a group of repositories", func(s *card.Server) {
			*s.Repository = card.Repository{URL: "https://gitlab.com/ada/tools/counter", Source: "gitlab"}
		}, ""},
		{"a folder elsewhere", func(s *card.Server) { s.Repository.Subfolder = "cmd/../.." }, "error /repository/subfolder repository"},
		{"an absolute folder", func(s *card.Server) { s.Repository.Subfolder = "/cmd" }, "error /repository/subfolder repository"},
		{"nothing to use", func(s *card.Server) { s.Packages, s.Remotes = nil, nil }, "warning  nothing"},
		{"a remote only", func(s *card.Server) { s.Packages = nil }, ""},
		{"data that is dropped", func(s *card.Server) { s.Meta["org.example/a"] = json.RawMessage("1") }, "warning /_meta/org.example~1a meta"},
		{"much data", func(s *card.Server) {
			s.Meta["io.modelcontextprotocol.registry/publisher-provided"] = json.RawMessage(`"` + strings.Repeat("a", 4095) + `"`)
		}, "error /_meta/io.modelcontextprotocol.registry~1publisher-provided meta"},
	} {
		t.Run(test.name, func(t *testing.T) { testChange(t, test.change, test.want) })
	}
}

func TestCheckPackages(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(npm, image, bundle *card.Package)
		want   string
	}{
		{"an unknown registry", func(p, _, _ *card.Package) { p.RegistryType = "cargo" }, "warning /packages/0/registryType registry"},
		{"a mirror", func(p, _, _ *card.Package) { p.RegistryBaseURL = "https://npm.example.org" }, "warning /packages/0/registryBaseUrl registry"},
		{"the arguments in the name", func(p, _, _ *card.Package) { p.Identifier += " -v" }, "error /packages/0/identifier identifier"},
		{"no version", func(p, _, _ *card.Package) { p.Version = "" }, "error /packages/0/version version"},
		{"a range of versions", func(p, _, _ *card.Package) { p.Version = "^1.2.0" }, "error /packages/0/version version"},
		{"a version of Python", func(p, _, _ *card.Package) { p.Version = "1.2.0rc1" }, ""},
		{"a hash", func(p, _, _ *card.Package) { p.FileSHA256 = strings.Repeat("a", 64) }, "warning /packages/0/fileSha256 member"},
		{"no hash", func(p, _, _ *card.Package) { p.FileSHA256 = "abc" }, "error /packages/0/fileSha256 schema, warning /packages/0/fileSha256 member"},
		{"an URL without a server", func(p, _, _ *card.Package) { p.Transport.URL = "http://127.0.0.1/" }, "error /packages/0/transport/url url"},
		{"an unknown transport", func(p, _, _ *card.Package) { p.Transport.Type = "http" }, "error /packages/0/transport/type schema, error /packages/0/transport/url url"},
		{"an image without a version", func(_, p, _ *card.Package) { p.Identifier = "ghcr.io/ada/counter" }, "warning /packages/1/identifier version"},
		{"the latest image", func(_, p, _ *card.Package) { p.Identifier = "ada/counter:latest" }, "warning /packages/1/identifier version"},
		{"an image with a digest", func(_, p, _ *card.Package) {
			p.Identifier = "us-docker.pkg.dev/ada/counter@sha256:" + strings.Repeat("a", 64)
		}, ""},
		{"an image in upper case", func(_, p, _ *card.Package) { p.Identifier = "ghcr.io/Ada/counter:1.2.0" }, "error /packages/1/identifier identifier"},
		{"an image on this machine", func(_, p, _ *card.Package) { p.Identifier = "localhost:5000/counter:1.2.0" }, "warning /packages/1/identifier registry"},
		{"members that an image has not", func(_, p, _ *card.Package) { p.Version, p.RegistryBaseURL = "1.2.0", "https://ghcr.io" },
			"error /packages/1/registryBaseUrl member, error /packages/1/version member"},
		{"arguments of nothing", func(_, p, _ *card.Package) { p.RuntimeHint = "" }, "warning /packages/1/runtimeHint runtime"},
		{"an argument without a name", func(_, p, _ *card.Package) { p.PackageArguments[0].Name = "" }, "error /packages/1/packageArguments/0/name argument"},
		{"a value in the name", func(_, p, _ *card.Package) { p.PackageArguments[0].Name = "-http <port>" }, "error /packages/1/packageArguments/0/name argument"},
		{"the name in the value", func(_, p, _ *card.Package) { p.PackageArguments[0].Value = "-http=:{port}" }, "error /packages/1/packageArguments/0 argument"},
		{"the name in the default", func(_, p, _ *card.Package) { p.PackageArguments[0].Default = "-http=:80" }, "error /packages/1/packageArguments/0 argument"},
		{"an argument without a value", func(_, p, _ *card.Package) { p.RuntimeArguments[0] = card.Argument{Type: "positional"} }, "error /packages/1/runtimeArguments/0 argument"},
		{"a kind of argument", func(_, p, _ *card.Package) { p.RuntimeArguments[0].Type = "flag" }, "error /packages/1/runtimeArguments/0/type schema"},
		{"a secret", func(_, p, _ *card.Package) { p.EnvironmentVariables[0].Value = "hush" }, "error /packages/1/environmentVariables/0 secret"},
		{"a secret by default", func(_, p, _ *card.Package) { p.EnvironmentVariables[0].Default = "hush" }, "error /packages/1/environmentVariables/0 secret"},
		{"a secret by its name", func(_, p, _ *card.Package) { p.EnvironmentVariables[0].Input = card.Input{Value: "hush"} }, "warning /packages/1/environmentVariables/0 secret"},
		{"a secret that hosts show", func(_, p, _ *card.Package) { p.EnvironmentVariables[0].IsSecret = false }, "note /packages/1/environmentVariables/0 secret"},
		{"a secret in a variable", func(_, p, _ *card.Package) {
			p.RuntimeArguments[0].Variables["a/token"] = card.Input{Default: "hush", IsSecret: true}
		}, "error /packages/1/runtimeArguments/0/variables/a~1token secret"},
		{"a secret in a header", func(_, p, _ *card.Package) { p.Transport.Headers[0].IsSecret = true }, "error /packages/1/transport/headers/0 secret"},
		{"no URL", func(_, p, _ *card.Package) { p.Transport.URL = "" }, "error /packages/1/transport/url url"},
		{"an undefined variable", func(_, p, _ *card.Package) { p.Transport.URL += "/{user}" }, "error /packages/1/transport/url variable"},
		{"no address", func(_, p, _ *card.Package) { p.Transport.URL = "127.0.0.1:{port}" }, "error /packages/1/transport/url url"},
		{"a bundle without encryption", func(_, _, p *card.Package) { p.Identifier = "http://github.com/counter.mcpb" }, "error /packages/2/identifier identifier"},
		{"a bundle elsewhere", func(_, _, p *card.Package) { p.Identifier = "https://example.org/counter.mcpb" }, "warning /packages/2/identifier registry"},
		{"a bundle of another kind", func(_, _, p *card.Package) { p.Identifier = "https://www.gitlab.com/counter.zip" }, "error /packages/2/identifier identifier"},
		{"a bundle without a hash", func(_, _, p *card.Package) { p.FileSHA256 = "" }, "error /packages/2/fileSha256 hash"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testChange(t, func(s *card.Server) { test.change(&s.Packages[0], &s.Packages[1], &s.Packages[2]) }, test.want)
		})
	}
}

func TestCheckRemotes(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(r *card.Remote)
		want   string
	}{
		{"standard input and output", func(r *card.Remote) { r.Type = card.Stdio }, "error /remotes/0/type schema"},
		{"event streams", func(r *card.Remote) { r.Type = card.SSE }, ""},
		{"without encryption", func(r *card.Remote) { r.URL = "http://example.org/mcp" }, "error /remotes/0/url url"},
		{"this machine", func(r *card.Remote) { r.URL = "https://LOCALHOST:8080/mcp" }, "error /remotes/0/url url"},
		{"a private network", func(r *card.Remote) { r.URL = "https://10.0.0.1/mcp" }, "error /remotes/0/url url"},
		{"a public address", func(r *card.Remote) { r.URL = "https://[2606:4700::1111]:8443/mcp" }, ""},
		{"a port that is given", func(r *card.Remote) { r.URL = "https://example.org:{tenant}" }, ""},
		{"an undefined variable", func(r *card.Remote) { r.URL = "https://{user}.example.org/" }, "error /remotes/0/url variable"},
		{"spaces", func(r *card.Remote) { r.URL = "https://example.org/m c p" }, "error /remotes/0/url url"},
		{"a password", func(r *card.Remote) { r.URL = "https://ada:hush@example.org/mcp" }, "error /remotes/0/url secret"},
		{"a key", func(r *card.Remote) { r.URL = "https://example.org/mcp?a=b&api_key=hush" }, "error /remotes/0/url secret"},
		{"no secret", func(r *card.Remote) { r.URL = "https://example.org/mcp/@ada?lang=en" }, ""},
		{"a token in a header", func(r *card.Remote) { r.Headers[0].Value = "Bearer hush" }, "warning /remotes/0/headers/0 secret"},
		{"a key by default", func(r *card.Remote) { r.Variables["key"] = card.Input{IsSecret: true, Default: "hush"} }, "error /remotes/0/variables/key secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testChange(t, func(s *card.Server) { test.change(&s.Remotes[0]) }, test.want)
		})
	}
}

func testChange(t *testing.T, change func(*card.Server), want string) {
	t.Helper()
	s := base()
	change(s)
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(check(t, data), ", "); got != want {
		t.Errorf("got %q, want %q\n%s", got, want, data)
	}
}

// Ranges of versions are not what is published.
func TestVersions(t *testing.T) {
	for version, isRange := range map[string]bool{
		"^1.2.3": true, "~1.2": true, ">=1.2.3": true, "< 2": true, "=1.2.3": true, "1.x": true, "1.2.X": true, "1.*": true, "*": true, "x": true, "v1.2.x": true,
		"1.0.0 - 2.0.0": true, "1.2 || 1.3": true,
		"1.2.3": false, "1.2.3-x": false, "0.1.0-alpha-1": false, "v1.0": false, "2025-06-18": false, "1.2.3+exp.x": false, "xenial": false, "(devel)": false,
	} {
		s := base()
		s.Version = version
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(check(t, data), ", "); (got == "error /version version") != isRange {
			t.Errorf("%s: got %q", version, got)
		}
	}
}

// What is no card is reported, and so are members that the format does not have: registries
// refuse them, and they are often those of an older format.
func TestShape(t *testing.T) {
	for data, want := range map[string]string{
		``:                                   "error  schema",
		`[]`:                                 "error  schema",
		`{"name": 1}`:                        "error /description schema, error /name schema, error /version schema",
		`{"name": "a.b/c", "name": "a.b/c"}`: "error  schema",
		`{"$schema": "` + card.Schema + `", "name": "a.b/cc", "description": "d", "version": "1.0.0", "remote": [], "packages": [
			{"registry_type": "npm", "registryType": "npm", "identifier": "a", "version": "1.0.0", "transport": {"type": "stdio"}}]}`: "warning /packages/0/registry_type unknown, warning /remote unknown",
		`{"$schema": "` + card.Schema + `", "name": "a.b/cc", "description": "d", "version": "1.0.0", "repository": null, "remotes": [{"type": "sse", "url": "https://a.example"}]}`: "error /repository schema",
		`{"name": "` + strings.Repeat("a", 1<<20) + `"}`: "error  schema",
	} {
		if got := strings.Join(check(t, []byte(data)), ", "); got != want {
			t.Errorf("%.300s: got %q, want %q", data, got, want)
		}
	}
}

// The remedy names what was probably meant.
func TestAdvice(t *testing.T) {
	for member, want := range map[string]string{
		`"registry_type": "npm"`:                         `did you mean "registryType"?`,
		`"quantity": 1`:                                  "remove it",
		`"transport": {"type": "stdi"}`:                  `did you mean "stdio"?`,
		`"transport": {"type": "websocket"}`:             `write one of "stdio", "streamable-http", "sse"`,
		`"transport": {"type": "stdio"}, "version": "x"`: "add it",
	} {
		_, found := card.Check(t.Context(), "server.json", []byte(`{"packages": [{`+member+`}]}`))
		if !slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Advice == want }) {
			t.Errorf("%s: found %v, want %s", member, found, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	data, err := json.Marshal(base())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(`{"remotes": [{"url": "https://{a}:{b}/?%zz=@{"}]}`)
	f.Fuzz(func(t *testing.T, data string) { check(t, []byte(data)) })
}
