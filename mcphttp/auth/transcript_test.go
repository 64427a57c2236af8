// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp/auth"
)

// parsed returns claims parsed from JSON.
func parsed(t *testing.T, text string) (c claims) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// random matches values that differ each time.
var random = regexp.MustCompile(`[\w-]{26,}`)

// The responses of a protected server to tokens, proofs and introspection responses with one
// claim missing or changed.
func TestTranscripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(1e6 * time.Second) // so that no time is near zero
		now := time.Now().Unix()
		full := string(must(json.Marshal(claims{
			"iss": issuer, "aud": []string{resource, "other"}, "sub": "alice", "exp": now + 300, "nbf": now, "iat": now, "jti": "j", "client_id": "c",
			"scope": "files:read files:list", "scp": []string{"x"}, "auth_time": now, "acr": "1",
		})))
		signed := func(c claims) string { return sign(jose.ES256, "ec", ecKey(), nil, c) }
		var text bytes.Buffer
		play := func(name, object string, say func(object string) *http.Request, v auth.Verifier) {
			answer := func(object string) string {
				a := ask(v, nil, say(object))
				caller := "none"
				if a.caller != nil {
					caller = string(must(json.Marshal(a.caller)))
				}
				caller = random.ReplaceAllString(caller, "...")
				return fmt.Sprintf("%d; caller %s; challenge %s; %s", a.Code, caller, a.challenge(), strings.TrimSpace(a.Body.String()))
			}
			expected := answer(object)
			fmt.Fprintf(&text, "> %s %s\n  %s\n", name, object, expected)
			for _, variant := range golden.Variants(t, object) {
				golden.WriteDifference(&text, variant.Name, expected, answer(variant.Text))
			}
		}
		play("token", full, func(object string) *http.Request { return bearing(signed(parsed(t, object))) }, auth.Bearer(newJWT(auth.JWTOptions{})))
		play("header", `{"typ":"at+jwt","kid":"ec"}`, func(object string) *http.Request {
			header := parsed(t, object)
			header["alg"] = "ES256"
			return bearing(forge(header, parsed(t, full), func([]byte) []byte { return make([]byte, 64) }))
		}, auth.Bearer(newJWT(auth.JWTOptions{})))
		bound := boundToken(otherKey())
		proof := fmt.Sprintf(`{"jti":"j","htm":"POST","htu":%q,"iat":%d,"nonce":"n"}`, resource, now)
		n := 0
		play("proof", proof, func(object string) *http.Request {
			c := parsed(t, object)
			if n++; c["jti"] == "j" {
				c["jti"] = fmt.Sprint("j", n) // unique
			}
			for _, name := range []string{"jti", "htm", "htu", "iat", "nonce"} {
				if _, ok := c[name]; !ok {
					c[name] = nil
				}
			}
			return proving(bound, prove(otherKey(), bound, nil, c))
		}, newDPoP(auth.DPoPOptions{}))
		answers := map[string]claims{}
		v := newInspector(answers).verifier(auth.IntrospectionOptions{Issuer: issuer})
		play("introspection", strings.Replace(full, "{", `{"active":true,"username":"al","token_type":"Bearer",`, 1), func(object string) *http.Request {
			n++
			answers[fmt.Sprint("t", n)] = parsed(t, object)
			return bearing(fmt.Sprint("t", n))
		}, auth.Bearer(v))
		golden.Check(t, "transcript", text.String())
	})
}
