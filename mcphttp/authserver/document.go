// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/network"
)

const (
	maxDocument = 32 << 10
	maxURL      = 512
	fetchTime   = 5 * time.Second
)

// newFetcher returns the HTTP client for metadata documents. It follows no redirects.
func newFetcher(egress http.RoundTripper) *http.Client {
	if egress == nil {
		dialer := &net.Dialer{Timeout: fetchTime, Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || network.KindOf(to.Addr()) != network.Public {
				return fmt.Errorf("authserver: %q is not a public address", address)
			}
			return nil
		}}
		egress = &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSHandshakeTimeout: fetchTime, MaxResponseHeaderBytes: 16 << 10}
	}
	return &http.Client{Transport: egress, Timeout: fetchTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// isDocument reports whether a client ID is the URL of a metadata document.
func isDocument(id string) bool {
	if len(id) > maxURL || !strings.HasPrefix(id, "https://") || !isRedirect(id) {
		return false
	}
	u, err := url.Parse(id)
	return err == nil && len(u.Path) > 1 && u.RawQuery == "" && !network.IsLocalName(u.Hostname()) && u.JoinPath().EscapedPath() == u.EscapedPath()
}

// client returns the client with an ID. A metadata document is fetched with every login, so
// a change of it takes effect at once.
func (s *Server) client(r *http.Request, id string) (*client, error) {
	if !isDocument(id) {
		return s.registered(id)
	}
	if !s.limit.allow(r, costFetch) {
		return nil, errBusy
	}
	select {
	case s.limit.fetches <- struct{}{}:
		defer func() { <-s.limit.fetches }()
	default:
		return nil, errBusy
	}
	doc, err := s.document(r.Context(), id)
	if err != nil {
		return nil, fmt.Errorf("authserver: the metadata document of the client: %w", err)
	}
	return doc, nil
}

func (s *Server) document(ctx context.Context, id string) (*client, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil) //nolint:gosec // see s.fetch
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := s.fetch.Do(req) //nolint:gosec // the fetcher dials public addresses only
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, fmt.Errorf("status %d, type %.50q", res.StatusCode, kind)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, maxDocument))
	if err != nil {
		return nil, err
	}
	var doc struct {
		registration `json:",inline,embed"`
		ID           string `json:"client_id"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, errors.New("not the JSON that was expected")
	}
	if doc.ID != id {
		return nil, errors.New("its client_id is not its URL")
	}
	c, err := doc.client()
	if err != nil {
		return nil, err
	}
	if c.Method != methodNone {
		return nil, fmt.Errorf("token_endpoint_auth_method is %q, only none is supported", c.Method)
	}
	c.ID, c.Host = id, req.URL.Host
	return c, nil
}
