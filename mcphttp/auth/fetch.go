// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

const (
	fetchTimeout = 10 * time.Second
	maxRedirects = 3
)

// A fetcher sends requests to an authorization server. It limits the size of responses, and
// follows redirects only within the origin. Callers set a timeout of fetchTimeout.
type fetcher struct {
	client *http.Client
	limit  int64 // maximum size of a body in bytes
}

// newFetcher returns a fetcher that uses a copy of client, which may be nil.
func newFetcher(client *http.Client, limit int64) *fetcher {
	c := &http.Client{}
	if client != nil {
		*c = *client
	}
	asked := c.CheckRedirect
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if err := checkRedirect(r, via); err != nil {
			return err
		}
		if asked != nil {
			return asked(r, via)
		}
		return nil
	}
	return &fetcher{c, limit}
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case first.Method != http.MethodGet:
		return errors.New("a request with credentials was redirected")
	case r.URL.Scheme != first.URL.Scheme || !strings.EqualFold(r.URL.Host, first.URL.Host):
		return fmt.Errorf("redirected from %s to another origin, %s", first.URL.Host, r.URL.Host)
	}
	return nil
}

func (f *fetcher) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return f.do(r)
}

// do sends a request and returns the body of the response, which must be a 200.
func (f *fetcher) do(r *http.Request) ([]byte, error) {
	if err := checkURL(r.URL); err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Redacted(), err)
	}
	r.Header.Set("Accept", "application/json")
	res, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", r.URL.Redacted(), res.Status)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, f.limit))
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%s answered with more than %d bytes", r.URL.Redacted(), tooLong.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Redacted(), err)
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), nil // without a byte order mark
}

// checkURL requires https, or http on a loopback address, where traffic cannot be
// intercepted.
func checkURL(u *url.URL) error {
	switch {
	case u.Hostname() == "":
		return errors.New("it must be an absolute URL with a host")
	case u.Scheme == "https", u.Scheme == "http" && network.IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("it must be an https URL; http is for loopback addresses only")
}

// parseEndpoint parses a configured URL. The error names it without its password.
func parseEndpoint(what, address string) (*url.URL, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, fmt.Errorf("auth: %s %q: %w", what, redact.URL(address), err)
	}
	return u, nil
}

// parseURL parses a URL that checkURL accepts. Its errors do not contain the URL, which may
// have a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	return u, checkURL(u)
}
