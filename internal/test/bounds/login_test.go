// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/authserver"
)

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

// beginLogins registers clients and begins logins that never end, as large as they can be: as
// often as one address may, or from as many addresses as fill the store.
func beginLogins(t *testing.T) {
	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, front)
	send := func(from int, r *http.Request) *httptest.ResponseRecorder {
		r.RemoteAddr = fmt.Sprintf("198.%d.%d.%d:1", from>>16, from>>8&255, from&255)
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w
	}
	redirect := "https://app.example/" + strings.Repeat("x", 1<<10-len("https://app.example/"))
	var client struct {
		ID string `json:"client_id"`
	}
	for range 1000 {
		body := `{"client_name":` + quote(text(100)) + `,"redirect_uris":[` + quote(redirect) + `,` + quote("https://app.example/"+text(1000)) + `]}`
		w := send(1, httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(body)))
		if w.Code == http.StatusCreated {
			if err := json.Unmarshal(w.Body.Bytes(), &client); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := url.Values{
		"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {redirect}, "state": {strings.Repeat("x", 2<<10)},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}, "dpop_jkt": {strings.Repeat("A", 43)},
	}
	page := send(2, httptest.NewRequest(http.MethodGet, "/authorize?"+link.Encode(), nil))
	token := tokenField.FindStringSubmatch(page.Body.String())
	if token == nil {
		t.Fatalf("%d %s", page.Code, page.Body)
	}
	form := url.Values{"token": {html.UnescapeString(token[1])}, "answer": {"allow"}}.Encode()
	begun := 0
	for from := range times(1, 2000) {
		for range times(1000, 10) {
			r := httptest.NewRequest(http.MethodPost, "/consent", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(page.Result().Cookies()[0])
			if w := send(10+from, r); w.Code == http.StatusSeeOther {
				begun++
			}
		}
	}
	t.Logf("%d logins", begun)
	if begun == 0 {
		t.Error("no login began")
	}
}
