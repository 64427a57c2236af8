// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/go-psi/psi/mcp/transport"
)

// told is a transport whose connections return a response or an error.
type told struct {
	response    *transport.Message
	err         error
	receive     transport.Receiver
	unconnected error
}

func (s *told) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	if s.receive = receive; s.unconnected != nil {
		return nil, s.unconnected
	}
	return s, nil
}

func (s *told) Call(context.Context, *transport.Outgoing) (*transport.Message, error) {
	return s.response, s.err
}
func (s *told) Send(context.Context, *transport.Outgoing) error { return s.err }
func (s *told) Close() error                                    { return nil }
func (s *told) Done() <-chan struct{}                           { return nil }
func (s *told) Err() error                                      { return nil }
func (s *told) Info() transport.Info                            { return transport.Info{Peer: "told"} }

// Everything that is sent and received is logged at level debug.
func TestWithLogging(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelInfo: "",
		slog.LevelDebug: `msg="mcp: not connected" error=refused
msg="mcp: sent" id=1 method=a json="{\"n\":1}"
msg="mcp: answered" id=1 method=a json="{\"r\":1}"
msg="mcp: sent" id=1 method=a json="{\"n\":1}"
msg="mcp: answered" id=1 method=a json="{\"code\":7,\"message\":\"no\"}"
msg="mcp: sent" id=1 method=a json="{\"n\":1}"
msg="mcp: failed" id=1 method=a json="" error=broken
msg="mcp: sent" id="" method=b json=[1,2]
msg="mcp: received" id=3 method=c json="{\"x\":1}" about=1
`,
	} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		}}))
		s := &told{unconnected: errors.New("refused")}
		received := 0
		receive := func(*transport.Message) { received++ }
		if _, err := transport.WithLogging(s, logger).Connect(t.Context(), receive); !errors.Is(err, s.unconnected) {
			t.Errorf("connected: %v", err)
		}
		s.unconnected = nil
		conn, err := transport.WithLogging(s, logger).Connect(t.Context(), receive)
		if err != nil {
			t.Fatal(err)
		}
		call := &transport.Outgoing{ID: transport.IntID(1), Method: "a", Body: []byte(`{"n":1}`)}
		for _, s.response = range []*transport.Message{{Result: []byte(`{"r":1}`)}, {Error: &transport.Error{Code: 7, Message: "no"}}} {
			if got, err := conn.Call(t.Context(), call); got != s.response || err != nil {
				t.Errorf("%v, %v", got, err)
			}
		}
		s.response, s.err = nil, errors.New("broken")
		if got, err := conn.Call(t.Context(), call); got != nil || !errors.Is(err, s.err) {
			t.Errorf("%v, %v", got, err)
		}
		if err := conn.Send(t.Context(), &transport.Outgoing{Method: "b", Body: []byte(`[1,2]`)}); !errors.Is(err, s.err) {
			t.Errorf("sent: %v", err)
		}
		s.receive(&transport.Message{ID: transport.IntID(3), Method: "c", Params: []byte(`{"x":1}`), About: transport.IntID(1)})
		s.receive(&transport.Message{ID: transport.IntID(4), Result: []byte(`{}`), About: transport.IntID(1)}) // a response is logged with its call
		if log.String() != want || received != 2 {
			t.Errorf("received %d, logged at %v\n%s\nwant\n%s", received, level, log.String(), want)
		}
	}
}

// If the logger is nil, slog.Default is used.
func TestWithLoggingByDefault(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	conn, err := transport.WithLogging(&told{}, nil).Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Send(t.Context(), &transport.Outgoing{Method: "a"}); err != nil || log.Len() == 0 {
		t.Errorf("logged %s, %v", log.String(), err)
	}
}
