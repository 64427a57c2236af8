// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/go-psi/psi/internal/filetype"
)

// An inliner turns a page into a single text by inlining the files that it refers to. Hosts
// show one text, not a site.
type inliner struct {
	fsys fs.FS // nil if there are no files
	dir  string
	csp  *CSP
}

func (in *inliner) inline(data []byte) (string, error) {
	if !isDocument(string(data)) {
		return "", errors.New("it does not begin with <!doctype html>")
	}
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(data))
	isStyle := false // the next token is the text of a style element
	for line := 1; ; {
		kind := z.Next()
		raw := append([]byte{}, z.Raw()...)
		switch kind {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return "", z.Err()
			}
			if out.Len() > maxPage {
				return "", fmt.Errorf("with the files in it, it has %d bytes, and the limit is %d", out.Len(), maxPage)
			}
			return out.String(), nil
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			changed, err := in.element(&t)
			if err != nil {
				return "", fmt.Errorf("line %d: <%s>: %w", line, t.Data, err)
			}
			if changed != "" {
				raw = []byte(changed)
			}
			isStyle = t.DataAtom == atom.Style
		case html.TextToken:
			if isStyle {
				styles, err := in.styles(string(raw), ".")
				if err != nil {
					return "", fmt.Errorf("line %d: <style>: %w", line, err)
				}
				raw = []byte(styles)
			}
			isStyle = false
		case html.EndTagToken:
			isStyle = false
		}
		out.Write(raw)
		line += bytes.Count(z.Raw(), []byte("\n"))
	}
}

// element returns the replacement of a start tag, or "" if the tag is unchanged.
func (in *inliner) element(t *html.Token) (string, error) {
	switch t.DataAtom {
	case atom.Script:
		return in.script(t)
	case atom.Link:
		return in.link(t)
	case atom.Img, atom.Source, atom.Video, atom.Audio, atom.Track, atom.Embed, atom.Input:
		return in.media(t)
	case atom.Iframe, atom.Frame:
		return "", in.mustBeDeclared(attribute(t, "src"), "FrameDomains")
	case atom.Base:
		return "", in.mustBeDeclared(attribute(t, "href"), "BaseURIDomains")
	}
	return "", nil
}

// appScript is what a page needs to talk to its host. Pages refer to it by appScriptURL.
//
//go:embed app.js
var appScript []byte

const appScriptURL = "psi:app.js"

func (in *inliner) script(t *html.Token) (string, error) {
	src := attribute(t, "src")
	switch {
	case src == appScriptURL && attribute(t, "type") == "module":
		return "", fmt.Errorf("%s cannot be a module: its variable app would be known to no other script", src)
	case src == appScriptURL:
	case strings.HasPrefix(src, "psi:"):
		return "", fmt.Errorf("there is no %q; did you mean %s?", src, appScriptURL)
	case !isRelative(src):
		return "", in.mustBeDeclared(src, "ResourceDomains")
	}
	if has(t, "defer") && attribute(t, "type") != "module" {
		return "", fmt.Errorf("%q has the attribute defer, which a script within a page cannot have: put it at the end of the body, or make it a module", src)
	}
	text, err := in.read(src)
	if err != nil {
		return "", err
	}
	remove(t, "src", "integrity", "crossorigin")
	return t.String() + endOfScript.ReplaceAllString(string(text), `<\$1`), nil // its end tag is in the page
}

// endOfScript matches what would end a script inside its text.
var endOfScript = regexp.MustCompile(`(?i)<(/script|!--)`)

func (in *inliner) link(t *html.Token) (string, error) {
	href := attribute(t, "href")
	rel := strings.ToLower(attribute(t, "rel"))
	switch {
	case rel == "stylesheet" && isRelative(href):
		text, err := in.read(href)
		if err != nil {
			return "", err
		}
		if strings.Contains(strings.ToLower(string(text)), "</style") {
			return "", fmt.Errorf("%q has the text </style, which would end it within a page", href)
		}
		styles, err := in.styles(string(text), path.Dir(href))
		style := html.Token{Type: html.StartTagToken, Data: "style", DataAtom: atom.Style}
		if media := attribute(t, "media"); media != "" {
			style.Attr = []html.Attribute{{Key: "media", Val: media}}
		}
		return style.String() + styles + "</style>", err
	case strings.Contains(rel, "icon") && isRelative(href):
		return in.data(t, "href")
	case rel == "canonical" || rel == "alternate" || rel == "author" || rel == "license":
		return "", nil // it is not loaded
	case isRelative(href):
		return "", fmt.Errorf("%q cannot be made a part of the page; use a style sheet or a script", href)
	}
	return "", in.mustBeDeclared(href, "ResourceDomains")
}

func (in *inliner) media(t *html.Token) (string, error) {
	if srcset := attribute(t, "srcset"); srcset != "" {
		return "", errors.New("srcset cannot be made a part of the page; use src")
	}
	changed := ""
	for _, name := range []string{"src", "poster"} {
		value := attribute(t, name)
		var err error
		if isRelative(value) {
			changed, err = in.data(t, name)
		} else {
			err = in.mustBeDeclared(value, "ResourceDomains")
		}
		if err != nil {
			return "", err
		}
	}
	return changed, nil
}

// data replaces a relative URL in an attribute with a data URL of the file.
func (in *inliner) data(t *html.Token, name string) (string, error) {
	uri, err := in.dataURI(attribute(t, name))
	if err != nil {
		return "", err
	}
	for i := range t.Attr {
		if t.Attr[i].Key == name {
			t.Attr[i].Val = uri
		}
	}
	return t.String(), nil
}

// cssURL matches a URL in a style sheet.
var cssURL = regexp.MustCompile(`url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]*))\s*\)`)

// styles replaces the relative URLs in a style sheet with data URLs.
func (in *inliner) styles(text, dir string) (string, error) {
	var problem error
	text = cssURL.ReplaceAllStringFunc(text, func(match string) string {
		m := cssURL.FindStringSubmatch(match)
		ref := m[1] + m[2] + m[3]
		if !isRelative(ref) {
			problem = errors.Join(problem, in.mustBeDeclared(ref, "ResourceDomains"))
			return match
		}
		uri, err := in.dataURI(path.Join(dir, ref))
		problem = errors.Join(problem, err)
		return `url("` + uri + `")`
	})
	return text, problem
}

func (in *inliner) dataURI(ref string) (string, error) {
	data, err := in.read(ref)
	if err != nil {
		return "", err
	}
	kind := filetype.ByName(ref)
	if kind == "" {
		kind = filetype.Of(data)
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
}

// read reads a file that the page refers to.
func (in *inliner) read(ref string) ([]byte, error) {
	if ref == appScriptURL {
		return appScript, nil
	}
	u, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if in.fsys == nil {
		return nil, fmt.Errorf("%q is a file, and Options.Assets has none", ref)
	}
	name := path.Join(in.dir, u.Path)
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%q is outside of the file system", ref)
	}
	f, err := in.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPage+1))
	if err == nil && len(data) > maxPage {
		err = fmt.Errorf("%q is larger than %d bytes", ref, maxPage)
	}
	return data, err
}

// isRelative reports whether a reference names a file of the page.
func isRelative(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && ref != "" && u.Scheme == "" && u.Host == "" && u.Path != ""
}

// mustBeDeclared returns an error unless a list of the CSP contains the origin of a URL.
func (in *inliner) mustBeDeclared(ref, list string) error {
	u, err := url.Parse(ref)
	switch {
	case err != nil:
		return err
	case ref == "" || u.Scheme == "data" || u.Scheme == "about" || u.Path == "" && u.Host == "" && u.Scheme == "":
		return nil
	case in.csp != nil && in.csp.allows(list, u):
		return nil
	}
	return fmt.Errorf("%q is loaded from elsewhere, and Options.CSP.%s does not have its origin", ref, list)
}

// allows reports whether a list contains the origin of a URL, as browsers compare them.
func (c *CSP) allows(list string, u *url.URL) bool {
	sources := map[string][]string{"ResourceDomains": c.ResourceDomains, "FrameDomains": c.FrameDomains, "BaseURIDomains": c.BaseURIDomains}[list]
	return slices.ContainsFunc(sources, func(source string) bool { return matchesSource(source, u) })
}

// matchesSource reports whether a source of a policy, such as https://*.example.com:8443, matches
// the origin of a URL, which has no scheme if it depends on the scheme of the page.
func matchesSource(source string, u *url.URL) bool {
	scheme, host, hasScheme := strings.Cut(source, "://")
	if !hasScheme {
		scheme, host = "", source
	}
	host, _, _ = strings.Cut(host, "/")
	host, port, _ := strings.Cut(host, ":")
	suffix, wild := strings.CutPrefix(host, "*")
	return (scheme == "" || u.Scheme == "" || scheme == u.Scheme) &&
		(host == u.Hostname() || wild && strings.HasSuffix(u.Hostname(), suffix)) &&
		(port == "*" || cmp.Or(port, defaultPort(u)) == cmp.Or(u.Port(), defaultPort(u)))
}

// defaultPort returns the port of a URL that has none.
func defaultPort(u *url.URL) string {
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

func attribute(t *html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

func has(t *html.Token, name string) bool {
	for _, a := range t.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// remove removes attributes.
func remove(t *html.Token, names ...string) {
	kept := t.Attr[:0]
	for _, a := range t.Attr {
		keep := true
		for _, name := range names {
			keep = keep && a.Key != name
		}
		if keep {
			kept = append(kept, a)
		}
	}
	t.Attr = kept
}
