// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
)

// listen serves h over HTTP/1 and unencrypted HTTP/2, for clients that write raw bytes.
func listen(t *testing.T, h http.Handler, configure ...func(*http.Server)) *memnet.Listener {
	t.Helper()
	l := memnet.Listen()
	server := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	for _, c := range configure {
		c(server)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l
}

func dialRaw(t *testing.T, l *memnet.Listener) net.Conn {
	t.Helper()
	conn, err := l.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// http2Client returns a client that uses HTTP/2 without TLS.
func http2Client(t *testing.T, l *memnet.Listener) *site {
	t.Helper()
	client := l.Client()
	transport, _ := client.Transport.(*http.Transport)
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(client.CloseIdleConnections)
	return &site{t: t, client: client}
}

// rawRequest returns an HTTP/1.1 request as raw bytes, with a Content-Length of length.
func rawRequest(method, body string, length int, h header) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n", method)
	if length > 0 {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	for key, value := range h {
		fmt.Fprintf(&b, "%s: %s\r\n", key, value)
	}
	return b.String() + "\r\n" + body
}

// within returns the next value of a channel, which must arrive within limit.
func within[T any](t *testing.T, limit time.Duration, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		t.Fatalf("%s did not happen within %v", what, limit)
	}
	return v
}

// frames is an HTTP/2 connection controlled by a test. Its initial window is 0, so the
// server cannot send any response body.
type frames struct {
	t     *testing.T
	conn  net.Conn
	reset chan time.Time // when a stream was reset
}

// The frame types and flags used here.
const (
	frameHeaders, frameReset, frameSettings = 1, 3, 4
	flagEndStream, flagEndHeaders, flagAck  = 1, 4, 1
	initialWindow                           = 4
)

func openFrames(t *testing.T, l *memnet.Listener) *frames {
	t.Helper()
	f := &frames{t, dialRaw(t, l), make(chan time.Time, 200)}
	go f.read()
	f.write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.frame(frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, initialWindow}, 0))
	return f
}

func (f *frames) write(b []byte) {
	f.t.Helper()
	if _, err := f.conn.Write(b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *frames) frame(kind, flags byte, stream uint32, payload []byte) {
	head := binary.BigEndian.AppendUint32([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}, stream)
	f.write(append(head, payload...))
}

func (f *frames) read() {
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(f.conn, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, f.conn, int64(head[1])<<8|int64(head[2])); err != nil {
			return
		}
		switch {
		case head[3] == frameReset:
			f.reset <- time.Now()
		case head[3] == frameSettings && head[4] != flagAck:
			go func() { _, _ = f.conn.Write([]byte{0, 0, 0, frameSettings, flagAck, 0, 0, 0, 0}) }()
		}
	}
}

// request sends a request, followed by its body unless body is "".
func (f *frames) request(stream uint32, method, body string, h header) {
	f.t.Helper()
	fields := []string{":method", method, ":scheme", "http", ":authority", "localhost", ":path", "/mcp"}
	if body != "" {
		fields = append(fields, "content-type", "application/json")
	}
	for key, value := range h {
		fields = append(fields, strings.ToLower(key), value)
	}
	var block bytes.Buffer
	for i := 0; i < len(fields); i += 2 {
		block.WriteByte(0) // a literal without indexing
		for _, s := range fields[i : i+2] {
			block.WriteByte(byte(len(s)))
			block.WriteString(s)
		}
	}
	if body == "" {
		f.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, block.Bytes())
		return
	}
	f.frame(frameHeaders, flagEndHeaders, stream, block.Bytes())
	f.frame(0, flagEndStream, stream, []byte(body))
}

// flood sends a request repeatedly, without reading, until the server closes the connection.
// The returned channel receives the time of that.
func flood(conn net.Conn, request string) <-chan time.Time {
	closed := make(chan time.Time, 1)
	go func() {
		for {
			if _, err := io.WriteString(conn, request); errors.Is(err, io.ErrClosedPipe) {
				closed <- time.Now()
				return
			}
		}
	}()
	return closed
}

// bubble runs a test with fake time.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// logged collects the log output of several goroutines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
