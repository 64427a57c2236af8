// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package card

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

// registries are the addresses of the registries that the official registry accepts.
var registries = map[string][]string{
	NPM:   {"https://registry.npmjs.org"},
	PyPI:  {"https://pypi.org"},
	NuGet: {"https://api.nuget.org/v3/index.json", "https://api.nuget.org"},
	OCI:   nil, // the address is part of the identifier
	MCPB:  {"https://github.com", "https://gitlab.com"},
}

// pkg checks a package.
func (c *checker) pkg(at string, p *Package) {
	known, isKnown := registries[p.RegistryType]
	switch {
	case !isKnown:
		c.report(lint.Warning, at+"/registryType", "registry", fmt.Sprintf("psi does not know that the official registry accepts %q", p.RegistryType),
			"write npm, pypi, nuget, oci or mcpb, or look it up")
	case p.RegistryBaseURL != "" && p.RegistryType != OCI && !slices.Contains(known, strings.TrimSuffix(p.RegistryBaseURL, "/")):
		c.report(lint.Warning, at+"/registryBaseUrl", "registry", fmt.Sprintf("the official registry accepts packages of %s only", known[0]), "leave it out")
	}
	if strings.ContainsAny(p.Identifier, " \t\n") {
		c.report(lint.Error, at+"/identifier", "identifier", fmt.Sprintf("%q contains spaces", p.Identifier), "write the name of the package only, and its arguments in packageArguments")
	}
	c.version(at+"/version", p.Version)
	switch p.RegistryType {
	case NPM, PyPI, NuGet:
		if p.Version == "" {
			c.report(lint.Error, at+"/version", "version", "the package has no version", "add the version that is published")
		}
		if p.FileSHA256 != "" {
			c.report(lint.Warning, at+"/fileSha256", "member", "the official registry accepts it for mcpb packages only", "remove it")
		}
	case OCI:
		c.image(at, p)
	case MCPB:
		c.bundle(at, p)
	}
	if p.RuntimeArguments != nil && p.RuntimeHint == "" {
		c.report(lint.Warning, at+"/runtimeHint", "runtime", "the runtime arguments are for a program that is not named", "add the name of the program, such as docker or npx")
	}
	variables := map[string]bool{}
	c.arguments(at+"/runtimeArguments", p.RuntimeArguments, variables)
	c.arguments(at+"/packageArguments", p.PackageArguments, variables)
	for i, v := range p.EnvironmentVariables {
		variables[v.Name] = true
		c.input(fmt.Sprintf("%s/environmentVariables/%d", at, i), v.Name, v.Input, v.Variables)
	}
	c.transport(at+"/transport", &p.Transport, variables)
}

// transport checks how to talk to the server of a package. The variables are what its URL may name.
func (c *checker) transport(at string, t *Transport, variables map[string]bool) {
	switch {
	case t.Type == Stdio && t.URL != "":
		c.report(lint.Error, at+"/url", "url", "a server on standard input and output has no URL", "remove it")
	case t.Type != Stdio && t.URL == "":
		c.report(lint.Error, at+"/url", "url", "the URL at which the server listens is missing", "add it, such as http://127.0.0.1:{port}/mcp")
	case t.Type != Stdio:
		c.url(at+"/url", t.URL, func(name string) bool { return variables[name] })
	}
	c.headers(at, t.Headers)
}

// reference matches an image: its host, if it has one, its path, its tag and its digest.
var reference = regexp.MustCompile(`^(?:([a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?::[0-9]+)?|localhost(?::[0-9]+)?)/)?` +
	`[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::(\w[\w.-]{0,127}))?(@sha256:[a-f0-9]{64})?$`)

func (c *checker) image(at string, p *Package) {
	for member, value := range inOrder(map[string]string{"registryBaseUrl": p.RegistryBaseURL, "version": p.Version, "fileSha256": p.FileSHA256}) {
		if value != "" {
			c.report(lint.Error, at+"/"+member, "member", "an image has no "+member, "write all of it into the identifier, such as ghcr.io/ada/counter:1.2.3")
		}
	}
	m := reference.FindStringSubmatch(p.Identifier)
	if m == nil {
		c.report(lint.Error, at+"/identifier", "identifier", fmt.Sprintf("%q is not the name of an image", p.Identifier), "write one such as ghcr.io/ada/counter:1.2.3, in lower case")
		return
	}
	host, tag, digest := m[1], m[2], m[3]
	if !isImageHost(host) {
		c.report(lint.Warning, at+"/identifier", "registry", "psi does not know that the official registry accepts images of "+host, "use a registry such as docker.io or ghcr.io, or look it up")
	}
	if digest == "" && (tag == "" || tag == "latest") {
		c.report(lint.Warning, at+"/identifier", "version", fmt.Sprintf("%q is another image tomorrow", p.Identifier), "add the tag of this version")
	}
}

// isImageHost reports whether the official registry accepts images of a host.
func isImageHost(host string) bool {
	switch host {
	case "", "docker.io", "index.docker.io", "registry-1.docker.io", "ghcr.io", "mcr.microsoft.com":
		return true
	}
	return strings.HasSuffix(host, ".pkg.dev") || strings.HasSuffix(host, ".azurecr.io")
}

func (c *checker) bundle(at string, p *Package) {
	u, err := url.Parse(p.Identifier)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		c.report(lint.Error, at+"/identifier", "identifier", fmt.Sprintf("%q is not the address of a bundle", p.Identifier), "write one that begins with https://")
	case !slices.Contains(registries[MCPB], "https://"+strings.TrimPrefix(u.Host, "www.")):
		c.report(lint.Warning, at+"/identifier", "registry", "the official registry accepts bundles of releases at github.com and gitlab.com only", "publish it there")
	case !strings.Contains(strings.ToLower(p.Identifier), "mcp"):
		c.report(lint.Error, at+"/identifier", "identifier", `the address of a bundle has to contain "mcp"`, "name the file NAME.mcpb")
	}
	if p.FileSHA256 == "" {
		c.report(lint.Error, at+"/fileSha256", "hash", "hosts cannot tell whether the bundle is the one that was published", "add its SHA-256, in hexadecimal")
	}
}

// arguments checks arguments, and adds their names to variables.
func (c *checker) arguments(at string, arguments []Argument, variables map[string]bool) {
	for i, a := range arguments {
		at := fmt.Sprintf("%s/%d", at, i)
		switch {
		case a.Type == "named" && a.Name == "":
			c.report(lint.Error, at+"/name", "argument", "a named argument has a name", "add it, with its dashes")
		case a.Type == "named" && strings.ContainsAny(a.Name, "<>$ "):
			c.report(lint.Error, at+"/name", "argument", fmt.Sprintf("%q is more than a name", a.Name), "write the value into value, default or valueHint")
		case a.Type == "named" && (strings.HasPrefix(a.Value, a.Name) || strings.HasPrefix(a.Default, a.Name)):
			c.report(lint.Error, at, "argument", "the value repeats the name "+a.Name, "write the value only")
		case a.Type == "positional" && a.Value == "" && a.ValueHint == "":
			c.report(lint.Error, at, "argument", "nobody knows what to write here", "add a value, or what it is for as valueHint")
		}
		variables[a.Name], variables[a.ValueHint] = true, true
		c.input(at, a.Name, a.Input, a.Variables)
	}
}

// input checks a value, and those that it names.
func (c *checker) input(at, name string, in Input, variables map[string]Input) {
	hasVariables := variable.MatchString(in.Value)
	switch isGiven := in.Default != "" || in.Value != "" && !hasVariables; {
	case in.IsSecret && isGiven:
		c.report(lint.Error, at, "secret", fmt.Sprintf("the secret of %s would be published", name), "remove the value: the host asks the user for it")
	case in.IsSecret || !redact.IsSecret(name):
	case isGiven:
		c.report(lint.Warning, at, "secret", name+" looks like a secret, and its value would be published", "remove the value, and add isSecret")
	case !hasVariables:
		c.report(lint.Note, at, "secret", name+" looks like a secret, which hosts would show", "add isSecret")
	}
	for name, in := range inOrder(variables) {
		c.input(child(at+"/variables", name), name, in, nil)
	}
}

func (c *checker) headers(at string, headers []Variable) {
	for i, h := range headers {
		c.input(fmt.Sprintf("%s/headers/%d", at, i), h.Name, h.Input, h.Variables)
	}
}

// remote checks a server at an address.
func (c *checker) remote(at string, r *Remote) {
	isDefined := func(name string) bool { _, ok := r.Variables[name]; return ok }
	switch u := c.url(at+"/url", r.URL, isDefined); {
	case u == nil:
	case IsPrivate(u.Hostname()):
		c.report(lint.Error, at+"/url", "url", "others cannot reach "+u.Hostname(), "write the public address, or a package")
	case u.Scheme != "https":
		c.report(lint.Error, at+"/url", "url", "the address of a remote does not begin with https://", "serve with TLS")
	case HasCredentials(r.URL):
		c.report(lint.Error, at+"/url", "secret", "the credentials in the address would be published", "write a {variable} in their place, and define it in variables")
	}
	c.headers(at, r.Headers)
	for name, in := range inOrder(r.Variables) {
		c.input(child(at+"/variables", name), name, in, nil)
	}
}

var (
	variable = regexp.MustCompile(`\{([^{}]+)\}`)
	port     = regexp.MustCompile(`:\{[^{}]+\}(/|$)`)
)

// url checks a URL that may contain variables. It returns it with other text in their place, or
// nil if it is not valid.
func (c *checker) url(at, text string, isDefined func(string) bool) *url.URL {
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		if !isDefined(m[1]) {
			c.report(lint.Error, at, "variable", fmt.Sprintf("nothing defines {%s}", m[1]), "define it: in variables for a remote, as an argument or variable of the environment for a package")
		}
	}
	u, err := url.Parse(variable.ReplaceAllString(port.ReplaceAllString(text, ":80$1"), "x"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(text, " \t\n") {
		c.report(lint.Error, at, "url", fmt.Sprintf("%q is not an address", text), "write one that begins with https://")
		return nil
	}
	return u
}

// IsPrivate reports whether a host is not on the internet.
func IsPrivate(host string) bool {
	ip, err := netip.ParseAddr(host)
	return network.IsLocalName(host) || err == nil && network.KindOf(ip) != network.Public
}

// HasCredentials reports whether a URL contains what looks like a secret.
func HasCredentials(text string) bool {
	before, query, _ := strings.Cut(text, "?")
	if _, rest, ok := strings.Cut(before, "://"); ok {
		if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority, "@") {
			return true
		}
	}
	values, err := url.ParseQuery(query)
	for name, values := range values {
		if redact.IsSecret(name) && !variable.MatchString(strings.Join(values, "")) {
			return true
		}
	}
	return err != nil
}
