// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// unreadableAnswers are formats of call responses that strict readers reject, with the ID
// as argument. JavaScript produces the first when text.slice(0, n) cuts an emoji.
var unreadableAnswers = map[string]string{
	"half a surrogate pair": `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"cut \ud83d"}]}}`,
	"the id comes last":     `{"result":{"content":[{"type":"text","text":"cut \ud83d","id":7}]},"jsonrpc":"2.0","id":%s}`,
	"a member twice":        `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"content":[]}}`,
	"no UTF-8":              `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"` + "\xff" + `"}]}}`,
	"too deep":              `{"jsonrpc":"2.0","id":%s,"result":{"structuredContent":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200) + `}}`,
	"no JSON":               `{"jsonrpc":"2.0","id":%s,"result":{"content":<html>}}`,
	"cut off":               `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":`,
	"result and error":      `{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}`,
	"an error without code": `{"jsonrpc":"2.0","id":%s,"error":"no"}`,
	"no version":            `{"id":%s,"result":{}}`,
	"in a broken batch":     `[{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\ud83d"}},{"jsonrpc":"2.0","id":%s,"result":{"a":"\ud83d"}}]`,
	"an error without id":   `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"could not read %.0s this"}}`,
}

// answeringWith returns a server that answers tools/call with the format, applied to the
// ID.
func answeringWith(format string) transport.Transport {
	return fakeServer(func(method, id string) (string, bool) {
		switch method {
		case mcp.MethodDiscover:
			return resultFor(id, discovered), true
		case "initialize":
			return resultFor(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`), true
		case mcp.MethodCallTool:
			return fmt.Sprintf(format, id), true
		}
		return "", true
	})
}

// An unreadable response fails its call immediately, and is logged.
func TestFindingCH2W2UnreadableAnswer(t *testing.T) {
	for name, format := range unreadableAnswers {
		for _, version := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					c := connectTo(t, answeringWith(format), &mcp.ClientOptions{Version: version, Logger: slog.New(slog.NewTextHandler(&log, nil))})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var read []mcptrace.WireInfo
					ctx = mcptrace.WithClientTrace(ctx, &mcptrace.ClientTrace{WireRead: func(i mcptrace.WireInfo) { read = append(read, i) }})
					start := time.Now()
					res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
					if err == nil || time.Since(start) > 0 {
						t.Fatalf("after %v: %+v, %v", time.Since(start), res, err)
					}
					if name == "an error without id" {
						return
					}
					if !errors.Is(err, mcp.ErrUnreadable) || !strings.Contains(log.String(), "it could not be read") {
						t.Errorf("the call failed with %v; logged: %s", err, log.String())
					}
					if len(read) != 1 || read[0].Err == nil || read[0].Message != nil {
						t.Errorf("traced was %+v", read)
					}
				})
			})
		}
	}
}

// When many messages are dropped, the first ones are logged, then fewer and fewer.
func TestDroppedMessagesAreLogged(t *testing.T) {
	var log bytes.Buffer
	flood := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":"x","method":"roots/list"},`, 70) + `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}]`
	c := connectTo(t, answeringWith(flood), &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := c.CallTool(t.Context(), tool("x", "")); err != nil {
		t.Fatal(err)
	}
	counts := regexp.MustCompile(`dropped=\d+`).FindAllString(log.String(), -1)
	if got := strings.Join(counts, " "); !strings.HasSuffix(got, "dropped=14 dropped=15 dropped=16 dropped=32 dropped=64") || len(counts) != 18 {
		t.Errorf("logged: %s", got)
	}
}

// IDs are compared by value, however they are written.
func TestFindingCH2IDsByValue(t *testing.T) {
	for _, format := range []string{`%s.0`, `%se0`, `%s0e-1`} {
		synctest.Test(t, func(t *testing.T) {
			c := connectTo(t, answeringWith(`{"jsonrpc":"2.0","id":`+format+`,"result":{"resultType":"complete","content":[]}}`), quietClient("2026-07-28"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "x"}); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		})
	}
}

// Responses and progress are accepted if a server writes the ID or the progress token as a
// string, as the official clients in Python and TypeScript do.
func TestIDsAsStrings(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		synctest.Test(t, func(t *testing.T) {
			c := connectTo(t, answeringWith(`[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%[1]s","progress":1}},
				{"jsonrpc":"2.0","id":"%[1]s","result":{"resultType":"complete","content":[]}}]`), quietClient(version))
			progress := 0.0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { progress = p.Progress })
			if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "x"}); err != nil || progress != 1 {
				t.Errorf("%s: %v, progress %v", version, err, progress)
			}
		})
	}
}

func quietClient(version string) *mcp.ClientOptions {
	return &mcp.ClientOptions{Version: version, Logger: quiet().Logger}
}

// An unreadable request from the server gets an error response, so that the server does not
// wait.
func TestFindingCH2UnreadableQuestion(t *testing.T) {
	heard := make(chan string, 8)
	said := `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"\ud83d"}}`
	c := connectTo(t, asks(said, heard), quietClient("2025-11-25"))
	defer c.Close()
	if got := <-heard; !strings.Contains(got, `"id":"q1"`) || !strings.Contains(got, "-32700") {
		t.Errorf("it was answered with %s", got)
	}
}

// An unreadable request is answered with its ID, wherever that appears, or without one if
// the ID is unknown.
func TestFindingW5UnreadableRequest(t *testing.T) {
	for _, era := range eras {
		for name, test := range map[string]struct{ message, id string }{
			"half a surrogate pair": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hello","arguments":{"a":"\ud83d"}}}`, "7"},
			"the id comes last":     {`{"method":"tools/call","params":{"name":"hello","arguments":{"a":"\ud83d","id":8}},"jsonrpc":"2.0","id":"x"}`, `"x"`},
			"a member twice":        {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hello","arguments":{"a":1,"a":2}}}`, "7"},
			"too deep":              {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}}`, "7"},
			"two ids":               {`{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/call"}`, ""},
			"an id that is broken":  {`{"jsonrpc":"2.0","id":"\ud83d","method":"tools/call"}`, ""},
			"an id of no kind":      {`{"jsonrpc":"2.0","id":{"a":"\ud83d"},"method":"tools/call"}`, ""},
			"no object":             {`"\ud83d"`, ""},
		} {
			p := newPeer(t, hello(), era)
			p.send(test.message)
			if got := p.read(); got.ID.String() != test.id || got.Error == nil || got.Error.Code != mcp.CodeParseError {
				t.Errorf("%s, %s: answered with id %s: %v", era.name, name, got.ID, got.Error)
			}
		}
	}
}

// core is the internal API used by the transports of this module.
var core = mcp.Internal(seam.Key{})

// requestOf converts a message to a request or notification.
func requestOf(tb testing.TB, m transport.Message) *mcp.Request {
	tb.Helper()
	req, err := core.NewRequest(&m)
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

// play lets a session serve one message, and returns the response.
func play(ctx context.Context, s *server.Session, m transport.Message, out server.Sender) []byte {
	c := s.Accept(ctx, m, server.Origin{})
	c.Serve(out)
	return c.Append(nil)
}

// memory returns an in-memory transport to a handler that serves all revisions.
func memory(tb testing.TB, h mcp.Handler) transport.Transport {
	return mcptest.Paths()[0].Serve(tb, h)
}

// A response that also has a method is invalid.
func TestResponseWithAMethod(t *testing.T) {
	for _, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
	} {
		if _, err := transport.ParseMessage([]byte(raw)); mcp.CodeOf(err) != mcp.CodeInvalidRequest {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// The time to parse an object is linear in the number of its members. If each were compared
// with all others, this test would take minutes.
func TestObjectOfManyMembers(t *testing.T) {
	members := make([]string, 300_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d":1`, i)
	}
	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{` + strings.Join(members, ",") + `}}}`
	if _, err := transport.ParseMessage([]byte(message)); err != nil {
		t.Error(err)
	}
}
