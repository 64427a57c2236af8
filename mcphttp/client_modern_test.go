// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// A modern call is answered with JSON or a stream. Messages before the response are about
// the call.
func TestTransportModern(t *testing.T) {
	l := serve(t, newHandler(t, tools(), nil)).link(nil)
	if r := l.call(toolCall(1, mcp.LatestVersion, "hello")); r.Error != nil || !strings.Contains(string(r.Result), "hello") {
		t.Errorf("hello: %s %v", r.Result, r.Error)
	}
	if r := l.call(toolCall(2, mcp.LatestVersion, "steps")); !strings.Contains(string(r.Result), "done") {
		t.Errorf("steps: %s %v", r.Result, r.Error)
	}
	for range 3 {
		if n := l.next(); n.Method == "" || n.Method != "notifications/progress" || n.About != mcp.IntID(2) {
			t.Errorf("received %+v about %q", n, n.About)
		}
	}
	if r := l.call(toolCall(3, mcp.LatestVersion, "none")); r.Error == nil || r.Error.Code != mcp.CodeInvalidParams {
		t.Errorf("an unknown tool: %v", r.Error)
	}
	select {
	case <-l.Done():
		t.Error("the connection has ended by itself")
	default:
	}
}

// T62: headers mirror the request, encoded where necessary, and cannot be set otherwise.
func TestTransportHeaders(t *testing.T) {
	v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})}
	l := serve(t, v).link(&mcphttp.TransportOptions{Header: http.Header{
		"Authorization": {"Bearer token"}, "x-tenant": {"a", "b"}, "Mcp-Method": {"forged"}, "Accept": {"text/html"},
	}})
	m := toolCall(1, mcp.LatestVersion, "größe")
	m.Headers = []transport.HeaderParam{{Key: "Mcp-Param-Region", Value: " eu "}, {Key: "Mcp-Param-Dry-Run", Value: "true"}, {Key: "Mcp-Param-Empty", Value: ""}}
	l.call(m)
	l.send(&transport.Outgoing{Method: "notifications/cancelled", Version: mcp.LatestVersion, Body: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)})
	want := map[string]string{
		"Mcp-Protocol-Version": "[2026-07-28]", "Mcp-Method": "[tools/call]", "Mcp-Name": "[=?base64?Z3LDtsOfZQ==?=]",
		"Mcp-Param-Region": "[=?base64?IGV1IA==?=]", "Mcp-Param-Dry-Run": "[true]", "Mcp-Param-Empty": "[]",
		"Accept": "[application/json, text/event-stream]", "Content-Type": "[application/json]",
		"Authorization": "[Bearer token]", "X-Tenant": "[a b]", "Mcp-Session-Id": "[]",
	}
	request, note := v.all[0].header, v.all[1].header
	for key, value := range want {
		if got := fmt.Sprint(request[key]); got != value {
			t.Errorf("the header %s is %s, want %s", key, got, value)
		}
	}
	if _, there := request["Mcp-Param-Empty"]; !there {
		t.Error("an empty argument has no header")
	}
	if note.Get("Mcp-Method") != "notifications/cancelled" || note.Get("Mcp-Protocol-Version") != mcp.LatestVersion || note.Get("Authorization") == "" {
		t.Errorf("the headers of a notification: %v", note)
	}
}

// T48, for the client: when the caller of a modern call gives up, its HTTP request is
// cancelled and nothing else is sent.
func TestTransportCancelModern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		began, stopped := waiting(mux)
		v := &visits{Handler: newHandler(t, mux, nil)}
		l := serve(t, v).link(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := l.Call(ctx, toolCall(1, mcp.LatestVersion, "wait"))
			failed <- err
		}()
		<-began
		why := errors.New("enough")
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("the call failed with %v", err)
		}
		<-stopped
		synctest.Wait()
		if len(v.all) != 1 {
			t.Errorf("%d requests were sent", len(v.all))
		}
		if _, err := l.Call(ctx, toolCall(2, mcp.LatestVersion, "hello")); !errors.Is(err, why) || len(v.all) != 1 {
			t.Errorf("a call with a context that is over: %v", err)
		}
	})
}

// T27: a stream that ends before the response fails the call promptly, with an error that
// can be recognized. T19: nothing is sent twice.
func TestTransportNoResponse(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"empty stream":   func(w http.ResponseWriter, _ *http.Request) { stream(w, "") },
		"comments":       func(w http.ResponseWriter, _ *http.Request) { stream(w, ": hello\n\n") },
		"a notification": func(w http.ResponseWriter, _ *http.Request) { stream(w, notification("x")) },
		"another's": func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n\n")
		},
		"a cut response": func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{")
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: hello\n\n") },
		"an event's kind": func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "event: ping\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n")
		},
		"a broken stream": func(w http.ResponseWriter, _ *http.Request) {
			stream(w, notification("x"))
			panic(http.ErrAbortHandler)
		},
		"a cut body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			say(w, `{"jsonrpc":"2.0",`)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"accepted":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	}
	for name, answer := range answers {
		for _, version := range both {
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := &visits{Handler: script{session: "s", post: answer}}
					l := serve(t, v).link(nil)
					if version != mcp.LatestVersion {
						l.handshake(version)
					}
					_, err := l.Call(t.Context(), toolCall(7, version, "a"))
					if err == nil || (name != "no answer" && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, mcp.ErrUnreadable)) || errors.Is(err, mcp.ErrSessionLost) {
						t.Errorf("the call failed with %v", err)
					}
					if n := len(v.of(http.MethodPost, "tools/call")); n != 1 {
						t.Errorf("the call was sent %d times", n)
					}
				})
			})
		}
	}
}

// A stream that the server ends without the response is as unreadable as a body without one,
// in both eras. One that is cut off is not.
func TestFindingY17StreamWithoutResponse(t *testing.T) {
	for _, version := range both {
		for name, test := range map[string]struct {
			answer     http.HandlerFunc
			unreadable bool
		}{
			"ended":          {func(w http.ResponseWriter, _ *http.Request) { stream(w, notification("x")) }, true},
			"ended, with id": {func(w http.ResponseWriter, _ *http.Request) { stream(w, "id: a\n"+notification("x")) }, true},
			"cut off": {func(w http.ResponseWriter, _ *http.Request) {
				stream(w, notification("x"))
				panic(http.ErrAbortHandler)
			}, false},
		} {
			bubble(t, name+" "+version, func(t *testing.T) {
				l := serve(t, script{session: "s", post: test.answer, get: func(w http.ResponseWriter, _ *http.Request) { stream(w, "") }}).link(nil)
				if version != mcp.LatestVersion {
					l.handshake(version)
				}
				_, err := l.Call(t.Context(), toolCall(7, version, "a"))
				if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, mcp.ErrUnreadable) != test.unreadable {
					t.Errorf("the call failed with %v", err)
				}
			})
		}
	}
}

func notification(param string) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%q}}\n\n", param)
}

// T26: anything that a server may send around a response is accepted.
func TestTransportStreamForms(t *testing.T) {
	response := `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`
	for name, body := range map[string]string{
		"plain":         "data: " + response + "\n\n",
		"CRLF":          "event: message\r\ndata:" + response + "\r\n\r\n",
		"CR":            "data: " + response + "\r\r",
		"lines":         "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\ndata: \"result\":{\"a\":1}}\n\n",
		"primed":        "id: 1\nretry: 10\ndata:\n\n: hello\n\nid: 2\ndata: " + response + "\n\n",
		"other kinds":   "event: ping\ndata: now\n\ndata: " + response + "\n\n",
		"no blank line": "data: " + response + "\n",
		"no line end":   "data: " + response,
		"mark":          "\xEF\xBB\xBFdata: " + response + "\n\n",
		"a batch":       "data: [" + strings.TrimSpace(strings.TrimPrefix(notification("x"), "data: ")) + "," + response + "]\n\n",
	} {
		for _, version := range both {
			t.Run(name+" "+version, func(t *testing.T) {
				l := serve(t, script{post: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
					stream(w, body)
				}}).link(nil)
				if r := l.call(toolCall(7, version, "a")); string(r.Result) != `{"a":1}` {
					t.Errorf("the result is %s", r.Result)
				}
			})
		}
	}
}

// T1 and T33, for the client: a message may be large. One that is too large fails only its
// call, and takes no more memory than the limit.
func TestTransportMaxMessage(t *testing.T) {
	size := 10 << 20
	message := func() string { return `{"jsonrpc":"2.0","id":7,"result":{"a":"` + strings.Repeat("x", size) + `"}}` }
	forms := map[string]http.HandlerFunc{
		"JSON": func(w http.ResponseWriter, _ *http.Request) { say(w, message()) },
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			stream(withType(w, "application/json"), "")
			say(w, message())
		},
		"stream": func(w http.ResponseWriter, _ *http.Request) { stream(w, "id: 1\ndata: "+message()+"\n\n") },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			s := serve(t, script{post: form})
			if r := s.link(nil).call(toolCall(7, mcp.LatestVersion, "a")); len(r.Result) < size {
				t.Errorf("%d bytes came", len(r.Result))
			}
			for _, version := range both {
				_, err := s.link(&mcphttp.TransportOptions{MaxMessage: 1 << 10}).Call(t.Context(), toolCall(7, version, "a"))
				if !errors.Is(err, mcphttp.ErrMessageTooLong) || errors.Is(err, transport.ErrNotUnderstood) {
					t.Errorf("over the limit: %v", err)
				}
			}
		})
	}
}

func withType(w http.ResponseWriter, kind string) http.ResponseWriter {
	w.Header().Set("Content-Type", kind)
	return w
}

// T46: a context of a request to an mcphttp server adds nothing to the requests of a client.
func TestTransportIgnoresInboundRequest(t *testing.T) {
	v := &visits{Handler: newHandler(t, tools(), nil)}
	l := serve(t, v).link(nil)
	front := mcp.NewMux("front", "v1", nil)
	front.Tool("through", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		_, err := l.Call(ctx, toolCall(1, mcp.LatestVersion, "hello"))
		return "", err
	}, nil))
	s := serve(t, newHandler(t, front, nil))
	body, h := callModern("through")
	whole(t, s.post(body, with(h, header{"Authorization": "Bearer inbound", "Mcp-Session-Id": "inbound", "Traceparent": "inbound"})))
	if len(v.all) != 1 {
		t.Fatalf("%d requests came through", len(v.all))
	}
	for key, values := range v.all[0].header {
		if strings.Contains(strings.Join(values, " "), "inbound") {
			t.Errorf("the header %s came through: %v", key, values)
		}
	}
}

// decorator wraps a transport like user code does.
type decorator struct{ transport.Transport }

func (d decorator) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	w, err := d.Transport.Connect(ctx, receive)
	return struct{ transport.Conn }{w}, err
}

// T63: a decorated transport knows the version like an undecorated one.
func TestTransportDecorated(t *testing.T) {
	for _, version := range both {
		v := &visits{Handler: newHandler(t, tools(), nil)}
		s := serve(t, v)
		conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).
			Connect(t.Context(), decorator{mcphttp.NewTransport("http://localhost/mcp", s.options(nil))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
			t.Error(err)
		}
		for _, call := range v.of(http.MethodPost, "tools/call") {
			if got := call.header.Get("Mcp-Protocol-Version"); got != version {
				t.Errorf("the header is %q, want %q", got, version)
			}
		}
		_ = conn.Close()
	}
}
