// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/printable"
)

const (
	maxRedirects = 16
	maxName      = 100                  // bytes of a client's name
	maxClient    = 2 << 10              // bytes of a registration
	clientAge    = 365 * 24 * time.Hour // then the client must register again
)

// A client is who sends users here. That of a registration is the client's ID, sealed: a
// flood of registrations leaves nothing behind.
type client struct {
	ID        string   `json:"-"`
	Host      string   `json:"-"` // of its metadata document; "" if nobody vouches for its name
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
	Method    string   `json:"m"`
	Secret    string   `json:"s,omitzero"` // the hash of the secret
	Expires   int64    `json:"e"`
}

// registration is what a client registers with (RFC 7591, section 2). Other members are
// ignored.
type registration struct {
	Name      string   `json:"client_name,omitzero"`
	Redirects []string `json:"redirect_uris"`
	Method    string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
}

// registered is the response to a registration.
type registered struct {
	registration `json:",inline,embed"`
	ID           string `json:"client_id"`
	Issued       int64  `json:"client_id_issued_at"`
	Secret       string `json:"client_secret,omitzero"`
	Expires      *int64 `json:"client_secret_expires_at,omitzero"`
}

// register registers a client.
func (s *Server) register(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	var asked registration
	if err != nil || json.Unmarshal(body, &asked) != nil {
		return nil, refuse("invalid_client_metadata", "the registration is not JSON as expected, or is too long")
	}
	c, err := asked.client()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c.Expires = now.Add(clientAge).Unix()
	answer := &registered{Issued: now.Unix(), registration: registration{
		Name: c.Name, Redirects: c.Redirects, Method: c.Method, Grants: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"},
	}}
	if c.Method != methodNone {
		answer.Secret, answer.Expires = newID(), &c.Expires
		c.Secret = hash(answer.Secret)
	}
	answer.ID, err = s.sealed(kindClient, c)
	return answer, err
}

// client checks the metadata of a client.
func (m *registration) client() (*client, error) {
	c := &client{Name: nameOf(m.Name), Redirects: m.Redirects, Method: m.Method}
	if c.Method == "" {
		c.Method = methodNone
	}
	size := 0
	for _, uri := range m.Redirects {
		size += len(uri)
		if !isRedirect(uri) {
			return nil, refuse("invalid_redirect_uri", "a redirect URI must be https, http on a loopback address, or have a scheme that is a reversed domain name; without user, fragment, unusual characters, and parameters of responses, such as code and iss")
		}
	}
	switch {
	case len(m.Redirects) == 0 || len(m.Redirects) > maxRedirects || size > maxClient:
		return nil, refuse("invalid_redirect_uri", "there must be between 1 and 16 redirect URIs, with at most 2048 bytes in all")
	case !slices.Contains([]string{methodNone, methodBasic, methodPost}, c.Method):
		return nil, refuse("invalid_client_metadata", "token_endpoint_auth_method is not supported")
	case m.Grants != nil && !slices.Contains(m.Grants, "authorization_code"):
		return nil, refuse("invalid_client_metadata", "grant_types must contain authorization_code")
	}
	return c, nil
}

// nameOf returns a client's name, in one line of visible characters.
func nameOf(name string) string {
	if len(name) > maxName {
		end := maxName
		for end > 0 && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end] + "…"
	}
	return printable.Line(strings.TrimSpace(name))
}

var errNoClient = errors.New("authserver: the client is unknown, or its registration has expired")

// registered returns the client with an ID that the server has issued.
func (s *Server) registered(id string) (*client, error) {
	c := &client{}
	if s.open(kindClient, id, c) != nil || time.Now().Unix() >= c.Expires {
		return nil, errNoClient
	}
	c.ID = id
	return c, nil
}

// authenticate returns the ID of the client that sends a form.
func (s *Server) authenticate(r *http.Request, form url.Values) (string, error) {
	refused := &problem{Code: "invalid_client", Description: "the client is unknown, its registration has expired, or its secret is wrong", status: http.StatusUnauthorized}
	id, secret, method := form.Get("client_id"), form.Get("client_secret"), methodNone
	if secret != "" {
		method = methodPost
	}
	if user, password, ok := r.BasicAuth(); ok {
		refused.header = http.Header{"Www-Authenticate": {"Basic"}}
		user, err := url.QueryUnescape(user)
		if err != nil || method == methodPost || id != "" && id != user {
			return "", refused
		}
		if password, err = url.QueryUnescape(password); err != nil {
			return "", refused
		}
		id, secret, method = user, password, methodBasic
	}
	if isDocument(id) && method == methodNone {
		return id, nil // it was fetched when the user was asked, and has no secret
	}
	c, err := s.registered(id)
	if err != nil || c.Method != method || subtle.ConstantTimeCompare([]byte(c.Secret), []byte(secretHash(secret))) != 1 {
		return "", refused
	}
	return id, nil
}

func secretHash(secret string) string {
	if secret == "" {
		return ""
	}
	return hash(secret)
}
