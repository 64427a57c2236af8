// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command authorization runs the conformance suite's legs for authorization servers against
// package authserver, with a provider behind it:
//
//	authorization node index.js authorization --output-dir results
//
// It adds the arguments that name the server and a client, and logs in where the suite wants
// a person with a browser to do so.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcphttp/authserver"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "authorization:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) error {
	if len(command) < 2 {
		return errors.New("usage: authorization command arguments")
	}
	_, issuer, err := serve(ctx, func(base string) (http.Handler, error) { return provider.New(base), nil })
	if err != nil {
		return err
	}
	front, base, err := serve(ctx, func(base string) (http.Handler, error) {
		return authserver.New(base+"/mcp", &authserver.Options{Provider: authserver.OIDC(issuer, provider.ClientID, provider.ClientSecret)})
	})
	if err != nil {
		return err
	}
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // a port that is free for the suite
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(here.Addr().String())
	if err = errors.Join(err, here.Close()); err != nil {
		return err
	}
	client, err := register(ctx, front, "http://127.0.0.1:"+port+"/callback")
	if err != nil {
		return err
	}
	args := slices.Concat(command[1:], []string{"--url", base, "--client-id", client, "--resource", base + "/mcp", "--port", port})
	suite := exec.CommandContext(ctx, command[0], args...) //nolint:gosec // it is the argument of a test
	suite.Stderr = os.Stderr
	out, err := suite.StdoutPipe()
	if err != nil {
		return err
	}
	if err := suite.Start(); err != nil {
		return err
	}
	lines, page := bufio.NewScanner(out), ""
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, base+"/authorize?"):
			page = line
		case strings.HasPrefix(line, "Callback server started"):
			err = login(ctx, page)
		}
		_, _ = os.Stdout.WriteString(lines.Text() + "\n")
	}
	return errors.Join(err, lines.Err(), suite.Wait())
}

// serve serves a handler on a free port of this machine until the program ends.
func serve(ctx context.Context, newHandler func(base string) (http.Handler, error)) (h http.Handler, base string, err error) {
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	base = "http://" + here.Addr().String()
	if h, err = newHandler(base); err != nil {
		return nil, "", err
	}
	go func() { _ = (&http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}).Serve(here) }()
	return h, base, nil
}

// register returns the ID of a client.
func register(ctx context.Context, front http.Handler, redirectURI string) (string, error) {
	rec := httptest.NewRecorder()
	body := fmt.Sprintf(`{"client_name":"conformance suite","redirect_uris":[%q]}`, redirectURI)
	front.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/register", strings.NewReader(body)))
	var client struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &client); err != nil || client.ID == "" {
		return "", fmt.Errorf("registration: %s", rec.Body)
	}
	return client.ID, nil
}

var token = regexp.MustCompile(`name="token" value="([^"]*)"`)

// login is the person: it answers the page for consent and the one of the provider, and ends
// at the suite's callback.
func login(ctx context.Context, page string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := &http.Client{Jar: jar}
	method, form := http.MethodGet, url.Values{}
	for range 3 {
		req, err := http.NewRequestWithContext(ctx, method, page, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
		at := *res.Request.URL
		method, form = http.MethodPost, url.Values{"user": {"ada"}}
		if m := token.FindSubmatch(text); m != nil {
			at.Path, at.RawQuery = "/consent", ""
			form = url.Values{"token": {html.UnescapeString(string(m[1]))}, "answer": {"allow"}}
		}
		page = at.String()
	}
	return nil
}
