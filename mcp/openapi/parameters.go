// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const maxParams = 200 // of an operation

// readParams reads the parameters. Those of the operation come first, and replace those of
// the path.
func (d *document) readParams(op *Operation, raw []any) error {
	seen := map[string]bool{}
	for _, v := range raw {
		spec, err := d.resolve(v)
		if err != nil {
			return err
		}
		p := &param{name: text(spec, "name"), in: text(spec, "in"), required: flag(spec, "required"), about: description(spec)}
		if seen[p.in+" "+p.name] || d.isReserved(p) {
			continue
		}
		if len(op.params) == maxParams {
			return fmt.Errorf("it has more than %d parameters", maxParams)
		}
		seen[p.in+" "+p.name] = true
		if err := p.read(spec); err != nil {
			return fmt.Errorf("parameter %q: %w", excerpt(p.name), err)
		}
		if p.in == "path" && !strings.Contains(op.path, "{"+p.name+"}") {
			continue
		}
		op.params = append(op.params, p)
	}
	return nil
}

func (p *param) read(spec map[string]any) error {
	p.schema = spec["schema"]
	p.style, p.delimiter, p.reserved = text(spec, "style"), text(spec, "x-delimiter"), flag(spec, "allowReserved")
	switch p.in {
	case "path":
		p.required = true
		p.style = cmpOr(p.style, "simple")
	case "header":
		if p.name == "" || strings.Trim(p.name, tokenChars) != "" {
			return errors.New("it is not the name of a header")
		}
		p.style = "simple"
	case "cookie":
		if p.name == "" || strings.Trim(p.name, tokenChars) != "" {
			return errors.New("it is not the name of a cookie")
		}
		p.style = "form"
	case "query":
		p.style = cmpOr(p.style, "form")
	case "querystring":
		return errors.New("a whole query as one parameter is not supported")
	default:
		return fmt.Errorf("its place %q is unknown", excerpt(p.in))
	}
	if !slices.Contains([]string{"simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"}, p.style) {
		return fmt.Errorf("its style %q is unknown", excerpt(p.style))
	}
	p.explode = p.style == "form"
	if explode, ok := spec["explode"].(bool); ok {
		p.explode = explode
	}
	for mediaType, content := range object(spec, "content") {
		media, _ := content.(map[string]any)
		p.schema, p.isJSON = media["schema"], isJSON(mediaType)
	}
	return nil
}

const tokenChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

// reservedHeaders are set by the client, by [Options.Authorize] or not at all.
var reservedHeaders = []string{
	"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "cookie", "expect", "forwarded", "host", "keep-alive",
	"origin", "proxy-authorization", "proxy-connection", "referer", "te", "trailer", "transfer-encoding", "upgrade", "via", "x-real-ip",
}

// isReserved reports whether a model must not choose the value: it is a credential, or a
// header that says who calls.
func (d *document) isReserved(p *param) bool {
	if name := strings.ToLower(p.name); p.in == "header" && (slices.Contains(reservedHeaders, name) || strings.HasPrefix(name, "x-forwarded-")) {
		return true
	}
	return d.credentials[credential{p.in, strings.ToLower(p.name)}]
}

// A credential is the place of an API key, with its name in lower case.
type credential struct{ in, name string }

// readCredentials returns the API keys among the security schemes.
func (d *document) readCredentials() map[credential]bool {
	schemes := object(d.root, "securityDefinitions")
	if !d.isSwagger {
		schemes = object(object(d.root, "components"), "securitySchemes")
	}
	keys := map[credential]bool{}
	for _, v := range schemes {
		if scheme, err := d.resolve(v); err == nil && text(scheme, "type") == "apiKey" {
			keys[credential{text(scheme, "in"), strings.ToLower(text(scheme, "name"))}] = true
		}
	}
	return keys
}
