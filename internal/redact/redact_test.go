// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/redact"
)

// secret is the value that must be redacted; only its context reveals that it is a
// password.
const secret = "hunter2hunter2"

var textRules = &redact.Rules{Text: redact.Text}

// quoted returns a text as JSON.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Secrets are redacted from typical output of servers: environments, configuration files,
// logs, output of git and kubectl, and headers.
func TestOutputOfServers(t *testing.T) {
	for name, text := range map[string]string{
		"an environment as JSON":          `{"PATH":"/usr/bin","GITHUB_TOKEN":"` + secret + `","HOME":"/root"}`,
		"an environment as text":          "PATH=/usr/bin\nAWS_SECRET_ACCESS_KEY=" + secret + "\nHOME=/root",
		"a shell script":                  "export OPENAI_API_KEY='" + secret + "'",
		"a file of settings":              "database:\n  user: ada\n  password: " + secret + "\n  port: 5432",
		"a .env file with quotes":         `DB_PASSWORD="` + secret + `"`,
		"an INI file":                     "[default]\naws_secret_access_key = " + secret,
		"a curl command":                  "curl -H 'Authorization: Bearer " + secret + "' https://api.example",
		"a basic header":                  "> Authorization: Basic " + secret + "\r\n> Accept: */*",
		"a cookie":                        "Set-Cookie: session=" + secret + "; HttpOnly",
		"a remote of git":                 "origin\thttps://ada:" + secret + "@git.example/x.git (fetch)",
		"the URL of a database":           "connecting to postgres://ada:" + secret + "@db.internal:5432/notes",
		"a URL with a key":                "GET https://api.example/v1?q=x&api_key=" + secret + "&page=2",
		"a connection string":             "AccountName=x;AccountKey=" + secret + ";EndpointSuffix=core",
		"a bearer token in prose":         "I called it with bearer " + secret + " and it failed",
		"a private key":                   "-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----",
		"a private key that is cut off":   "-----BEGIN PRIVATE KEY-----\nMIIE" + secret,
		"a JSON Web Token":                "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0." + secret + " back",
		"a token of GitHub":               "use ghp_" + secret + "0123456789abcd",
		"a key of a model provider":       "use sk-proj-" + secret + "0123456789",
		"a token of Slack":                "xoxb-12345-" + secret,
		"JSON with a secret in a program": `const config = { apiKey: "` + secret + `", retries: 3 }`,
		"JSON in JSON":                    `{"stdout":"{\"client_secret\":\"` + secret + `\"}","exit":0}`,
		"a passphrase":                    `passphrase: "correct horse, ` + secret + `"`,
		"a password with a quote":         `DB_PASSWORD="a\"b & ` + secret + `"`,
		"a password in single quotes":     `{'api_key': 'a "b" ` + secret + `'}`,
		"JSON in a line of a log":         `level=INFO body="{\"password\":\"a, ` + secret + `\",\"n\":1}"`,
		"headers in a line of a log":      `level=INFO headers="{\"Authorization\": \"Basic ` + secret + `\"}"`,
		"JSON in a code block":            "```json\n{\"password\": \"" + secret + "\"}\n```",
	} {
		result := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":` + quoted(text) + `}]}}`
		got := string(redact.JSON([]byte(result), textRules))
		if strings.Contains(got, secret) || !strings.Contains(got, redact.Redacted) || !json.Valid([]byte(got)) {
			t.Errorf("%s becomes\n%s", name, got)
		}
	}
}

// Signatures, codes and keys in URLs are secrets: a signed URL is all that it takes to read a
// file.
func TestFindingX17SignedURLs(t *testing.T) {
	for _, url := range []string{
		"https://x.blob.core.example/c/f?sv=2024&sig=" + secret + "&se=2026",
		"https://b.s3.example/f?X-Amz-Signature=" + secret,
		"https://storage.example/f?X-Goog-Signature=" + secret + "#top",
		"http://127.0.0.1:8080/callback?code=" + secret + "&state=x",
		"https://maps.example/api?key=" + secret + "&q=x",
		"https://x.example/login?to=https%3A%2F%2Fy.example%2Ff%3Fsig%3D" + secret + "%26se%3D1",
		"see <https://x.example/f?a=b&amp;sig=" + secret + ">",
	} {
		got := redact.Text(url)
		if strings.Contains(got, secret) || !strings.Contains(got, "(redacted)") {
			t.Errorf("%s became %s", url, got)
		}
		for _, kept := range []string{"&se=2026", "&state=x", "&q=x", "%26se%3D1", "#top"} {
			if strings.Contains(url, kept) != strings.Contains(got, kept) {
				t.Errorf("%s lost %s: %s", url, kept, got)
			}
		}
	}
	for _, text := range []string{"https://x.example/search?query=signature&zipcode=1234&keyboard=de", "the exit code=1; auth=none", "a design=b"} {
		if got := redact.Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// Text without secrets is unchanged, byte for byte.
func TestUnchanged(t *testing.T) {
	for _, text := range []string{
		"The password is in the vault.", "maxTokens: 100", "See https://example.com/a:b?page=2#x.", "12:30:05", "a=b", "Use basic authentication.",
		"a bearer of bad news", "tokenizer=x", "https://localhost:8080/path@2", "{not JSON", "[info] started", "sk-", "time: 2026-11-23T00:00:00Z",
		`{"title":"x","count":3}`, strings.Repeat("iVBORw0KGgo=", 200),
	} {
		result := `{"content":[{"type":"text","text":` + quoted(text) + `}],"isError":false,"n":1.0}`
		if got := string(redact.JSON([]byte(result), textRules)); got != result {
			t.Errorf("%q becomes\n%s", text, got)
		}
	}
}

// A redacted value keeps its type, and schemas keep their properties.
func TestShape(t *testing.T) {
	for raw, want := range map[string]string{
		`{"password":"x"}`:                     `{"password":"(redacted)"}`,
		`{"pin":1234,"otp":true}`:              `{"pin":0,"otp":false}`,
		`{"token":null}`:                       `{"token":null}`,
		`{"tokens":["a",{"b":"c"}]}`:           `{"tokens":["(redacted)",{"b":"(redacted)"}]}`,
		`{"credentials":{"user":"ada","n":1}}`: `{"credentials":{"user":"(redacted)","n":0}}`,
		`{"progressToken":"7","maxTokens":5}`:  `{"progressToken":"7","maxTokens":5}`,
		`{"inputSchema":{"type":"object","properties":{"password":{"type":"string"}}}}`:          `{"inputSchema":{"type":"object","properties":{"password":{"type":"string"}}}}`,
		`{"params":{"requestedSchema":{"properties":{"token":{"type":"string"}}},"secret":"x"}}`: `{"params":{"requestedSchema":{"properties":{"token":{"type":"string"}}},"secret":"(redacted)"}}`,
		`{"a":`: `"(malformed)"`,
		``:      ``,
	} {
		if got := string(redact.JSON([]byte(raw), nil)); got != want {
			t.Errorf("%s becomes %s, want %s", raw, got, want)
		}
	}
}

// Custom rules apply in addition to the built-in ones.
func TestRules(t *testing.T) {
	rules := &redact.Rules{
		Name: func(name string) bool { return name == "iban" },
		Text: func(text string) string { return strings.ReplaceAll(text, "Ada", "A.") },
	}
	got := string(redact.JSON([]byte(`{"iban":"DE00","name":"Ada","nested":"{\"iban\":\"DE00\",\"by\":\"Ada\"}"}`), rules))
	if want := `{"iban":"(redacted)","name":"A.","nested":"{\"iban\":\"(redacted)\",\"by\":\"A.\"}"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Redacting any JSON yields valid JSON, and redacting the result changes nothing.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"password":"x","text":"{\"token\":[1]}"}`, `["Authorization: Bearer abc123def"]`, `"\ud83d\ude00 api_key=\u0022x\u0022"`, `{"a":{"inputSchema":{}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once := redact.JSON(raw, textRules)
		if len(once) > 0 && !json.Valid(once) {
			t.Fatalf("%q becomes %q", raw, once)
		}
		if twice := redact.JSON(once, textRules); string(twice) != string(once) {
			t.Errorf("%q becomes %q and then %q", raw, once, twice)
		}
	})
}
