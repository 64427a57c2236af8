// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// discovery finds the keys of an issuer through its metadata. It is for one goroutine
// at a time, as fetches are.
type discovery struct {
	fetch  *fetcher
	issuer string
	url    string // where the keys were last found
}

func (d *discovery) load(ctx context.Context) ([]byte, error) {
	if d.url != "" {
		if text, err := d.fetch.get(ctx, d.url); err == nil {
			return text, nil
		}
	}
	address, err := d.discover(ctx)
	if err != nil {
		return nil, err
	}
	d.url = address
	return d.fetch.get(ctx, address)
}

// discover asks where clients of MCP ask, in their order.
func (d *discovery) discover(ctx context.Context) (string, error) {
	u := mustEndpoint("the issuer", d.issuer)
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	var problems []error
	for _, place := range places {
		address, err := d.read(ctx, place)
		if err == nil {
			return address, nil
		}
		problems = append(problems, err)
	}
	return "", fmt.Errorf("the metadata of %s: %w", d.issuer, errors.Join(problems...))
}

func (d *discovery) read(ctx context.Context, place string) (string, error) {
	text, err := d.fetch.get(ctx, place)
	if err != nil {
		return "", err
	}
	var m struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("%s: %w", place, err)
	}
	if m.Issuer != d.issuer {
		return "", fmt.Errorf("%s is of the issuer %.200q", place, m.Issuer)
	}
	u, err := url.Parse(m.Keys)
	if err == nil {
		err = checkURL(u)
	}
	if err != nil {
		return "", fmt.Errorf("%s: jwks_uri %.200q: %w", place, m.Keys, err)
	}
	return m.Keys, nil
}
