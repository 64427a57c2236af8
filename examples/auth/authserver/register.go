// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
)

// client is a registered program. Its name is chosen by the program and not verified.
type client struct {
	ID           string   `json:"client_id"`
	Name         string   `json:"client_name,omitempty"`
	RedirectURIs []string `json:"redirect_uris"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
}

func (s *server) client(id string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[id]
}

func (s *server) register(w http.ResponseWriter, r *http.Request) {
	var c client
	if err := json.NewDecoder(r.Body).Decode(&c); r.Method != http.MethodPost || err != nil || len(c.Name) > 100 {
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "expected a POST of a JSON object, and a name of up to 100 bytes")
		return
	}
	if len(c.RedirectURIs) == 0 || len(c.RedirectURIs) > 10 || slices.ContainsFunc(c.RedirectURIs, isUnsafe) {
		writeError(w, http.StatusBadRequest, "invalid_redirect_uri", "expected up to 10, https or on the user's own machine")
		return
	}
	c.ID, c.AuthMethod = rand.Text(), "none"
	s.mu.Lock()
	makeRoom(s.clients, maxClients)
	s.clients[c.ID] = &c
	s.mu.Unlock()
	writeJSON(w, http.StatusCreated, &c)
}

// isUnsafe reports whether a user must not be redirected to an address with a code.
func isUnsafe(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return true
	}
	local := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	return u.Scheme != "https" && (u.Scheme != "http" || !local)
}
