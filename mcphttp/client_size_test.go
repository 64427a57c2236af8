// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// messageOf returns a response of a given size in bytes.
func messageOf(size int) string {
	const head, tail = `{"jsonrpc":"2.0","id":7,"result":{"x":"`, `"}}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// A message may have at most MaxMessage bytes, however it is sent.
func TestTransportMessageBounds(t *testing.T) {
	forms := map[string]func(w http.ResponseWriter, message string){
		"of known length": func(w http.ResponseWriter, m string) {
			w.Header().Set("Content-Length", strconv.Itoa(len(m)))
			say(w, m)
		},
		"of unknown length": func(w http.ResponseWriter, m string) {
			say(w, m[:10])
			_ = http.NewResponseController(w).Flush()
			say(w, m[10:])
		},
		"an event": func(w http.ResponseWriter, m string) { stream(w, "data: "+m+"\n\n") },
	}
	for name, form := range forms {
		for _, version := range both {
			for size, fits := range map[int]bool{1000: true, 1001: false} {
				l := serve(t, script{session: "s", post: func(w http.ResponseWriter, _ *http.Request) { form(w, messageOf(size)) }}).
					link(&mcphttp.TransportOptions{MaxMessage: 1000})
				if version != mcp.LatestVersion {
					l.handshake(version)
				}
				_, err := l.Call(t.Context(), toolCall(7, version, "a"))
				if fits && err != nil || !fits && !errors.Is(err, mcphttp.ErrMessageTooLong) {
					t.Errorf("%s, %s, %d bytes: %v", version, name, size, err)
				}
			}
		}
	}
}

// By default, a message may have at most 64 MiB.
func TestTransportDefaultMessageBounds(t *testing.T) {
	for size, fits := range map[int]bool{64 << 20: true, 64<<20 + 1: false} {
		l := serve(t, script{post: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			say(w, `{`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // the announced length is enough
		}}).link(nil)
		if _, err := l.Call(t.Context(), toolCall(7, mcp.LatestVersion, "a")); err == nil || errors.Is(err, mcphttp.ErrMessageTooLong) == fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A StatusError keeps 4 KiB of a body and prints 200 bytes of it. A JSON-RPC error in the
// body is read up to 1 MiB, or MaxMessage if that is less.
func TestStatusErrorBounds(t *testing.T) {
	refused := func(body string, opts *mcphttp.TransportOptions) *mcphttp.StatusError {
		l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, body)
		})).link(opts)
		_, err := l.Call(t.Context(), toolCall(7, mcp.LatestVersion, "a"))
		status, _ := errors.AsType[*mcphttp.StatusError](err)
		return status // nil if the body is the response
	}
	for size, kept := range map[int]int{4095: 4095, 4096: 4096, 4097: 4096} {
		body := strings.Repeat("x", size)
		if e := refused(body, nil); e == nil || len(e.Body) != kept || !strings.Contains(e.Error(), `"`+body[:200]+`"`) {
			t.Errorf("%d bytes: %v", size, e)
		}
	}
	problem := `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no"}}`
	padded := func(size int) string { return strings.Repeat(" ", size-len(problem)) + problem }
	for size, isAnswer := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		if e := refused(padded(size), nil); (e == nil) != isAnswer {
			t.Errorf("%d bytes: %v", size, e)
		}
	}
	for size, isAnswer := range map[int]bool{100: true, 101: false} {
		if e := refused(padded(size), &mcphttp.TransportOptions{MaxMessage: 100}); (e == nil) != isAnswer {
			t.Errorf("%d bytes of 100: %v", size, e)
		}
	}
}

// A message is redirected at most nine times, as in net/http.
func TestTransportRedirectBounds(t *testing.T) {
	for redirects, good := range map[int]bool{9: true, 10: false} {
		seen := 0
		l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if seen++; seen <= redirects {
				http.Redirect(w, r, fmt.Sprint("/", seen), http.StatusTemporaryRedirect)
				return
			}
			say(w, messageOf(100))
		})).link(nil)
		if _, err := l.Call(t.Context(), toolCall(7, mcp.LatestVersion, "a")); (err == nil) != good {
			t.Errorf("%d redirects: %v", redirects, err)
		}
	}
}

// A RoundTripper gets requests like those of http.NewRequest, because some pass requests
// directly to a handler.
func TestTransportRequests(t *testing.T) {
	var got []*http.Request
	opts := &mcphttp.TransportOptions{Logger: quiet, Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network")
	})}}
	wire, err := mcphttp.NewTransport("http://localhost:8080/mcp?x=1", opts).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	m := toolCall(7, mcp.LatestVersion, "a")
	_, _ = wire.Call(t.Context(), m)
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	want, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost:8080/mcp?x=1", strings.NewReader(string(m.Body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"Method", "URL", "Proto", "ProtoMajor", "ProtoMinor", "ContentLength", "Host", "Close"} {
		if g, w := reflect.ValueOf(got[0]).Elem().FieldByName(field).Interface(), reflect.ValueOf(want).Elem().FieldByName(field).Interface(); !reflect.DeepEqual(g, w) {
			t.Errorf("%s is %v, want %v", field, g, w)
		}
	}
	body, err := got[0].GetBody()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); err != nil || string(text) != string(m.Body) {
		t.Errorf("the body is %s, %v", text, err)
	}
}

// Options cannot set headers of the protocol, even those that the transport does not send.
func TestTransportHeadersOfTheProtocol(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		var got http.Header
		opts := &mcphttp.TransportOptions{
			Logger: quiet,
			Header: http.Header{
				"mcp-session-id": {"made up"}, "Last-Event-ID": {"made up"}, "Mcp-Method": {"made up"}, "Mcp-Param-A": {"made up"},
				"Mcp-Tenant": {"one"}, "x-api-key": {"secret"},
			},
			Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				got = r.Header
				return nil, errors.New("no network")
			})},
		}
		wire, err := mcphttp.NewTransport("http://localhost:8080/mcp", opts).Connect(t.Context(), func(*transport.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = wire.Call(t.Context(), toolCall(7, version, "a"))
		_ = wire.Close()
		if text := fmt.Sprint(got); strings.Contains(text, "made up") || got.Get("Mcp-Tenant") != "one" || got.Get("X-Api-Key") != "secret" {
			t.Errorf("%s: sent %s", version, text)
		}
	}
}

// endlessBody is a stream with a response followed by endless comments.
type endlessBody struct {
	start  string
	read   int
	closed chan int // receives the number of bytes read
}

func (b *endlessBody) Read(p []byte) (int, error) {
	n := copy(p, b.start)
	b.start = b.start[n:]
	if n == 0 {
		for i := range p {
			p[i] = ':'
		}
		n = len(p)
	}
	b.read += n
	return n, nil
}

func (b *endlessBody) Close() error { b.closed <- b.read; return nil }

// After the response, up to 64 KiB of the stream are read, so that the network connection
// can be reused.
func TestTransportDrainBounds(t *testing.T) {
	body := &endlessBody{start: response7, closed: make(chan int, 1)}
	opts := &mcphttp.TransportOptions{Logger: quiet, Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
	})}}
	wire, err := mcphttp.NewTransport("http://localhost/mcp", opts).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Call(t.Context(), toolCall(7, mcp.LatestVersion, "a")); err != nil {
		t.Fatal(err)
	}
	if n := <-body.closed; n < 64<<10 || n > 64<<10+4096 { // as much as is read ahead
		t.Errorf("%d bytes were read", n)
	}
	_ = wire.Close()
}
