// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp/transport"
)

// Redaction adds rules for secrets to the rules that always apply. Nil means the zero
// Redaction.
//
// Members whose names indicate secrets (see [transport.WithLogging]) are always redacted.
// In text, so are the values of settings, headers and URL parameters with such names,
// passwords in URLs, private keys, JSON Web Tokens, and keys of well-known services. A
// redacted string becomes "(redacted)", a number 0 and a boolean false, so that messages
// keep their shape. The rules cannot find every secret: review a recording before you share
// it.
type Redaction struct {
	// Name reports whether the object member name is a secret. Nil means no further names.
	Name func(name string) bool
	// Text returns text without the secrets in it. It is called for every string that does
	// not contain JSON. Nil means no further rules.
	Text func(text string) string
}

// rules returns the combined rules.
func (r *Redaction) rules() *redact.Rules {
	rules := &redact.Rules{Text: redact.Text}
	if r == nil {
		return rules
	}
	rules.Name = r.Name
	if more := r.Text; more != nil {
		rules.Text = func(text string) string { return redact.Text(more(text)) }
	}
	return rules
}

// maxMessage is the maximum size of a recorded message in bytes, as long as an endpoint
// accepts by default.
const maxMessage = 16 << 20

// RecorderOptions configure a [Recorder]. Nil means the zero RecorderOptions.
type RecorderOptions struct {
	// Redaction adds rules for secrets. Nil means no further rules.
	Redaction *Redaction
}

// A Recorder writes conversations to an [io.Writer]. It is safe for concurrent use. It must
// be created by [NewRecorder].
type Recorder struct {
	rules      *redact.Rules
	maxMessage int // the constant, except in tests

	connections, requests atomic.Int64

	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewRecorder returns a Recorder that writes to w, with one Write for each line. A message is
// passed on after it has been written, so a slow writer delays it. Messages of more than 16 MiB
// are omitted; see [Entry].Omitted. A write error ends the recording, but not the conversation.
// opts may be nil. NewRecorder panics if w is nil.
func NewRecorder(w io.Writer, opts *RecorderOptions) *Recorder {
	if w == nil {
		panic("recording: NewRecorder: the writer is nil")
	}
	if opts == nil {
		opts = new(RecorderOptions)
	}
	return &Recorder{w: w, rules: opts.Redaction.rules(), maxMessage: maxMessage}
}

// mustBeMade panics unless the Recorder was created by NewRecorder.
func (r *Recorder) mustBeMade() {
	made.Check(r != nil && r.w != nil, "recording: a Recorder", "NewRecorder")
}

// Err returns the write error that ended the recording, or nil if there was none.
func (r *Recorder) Err() error {
	r.mustBeMade()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// write writes an entry with the message m, redacted. M may be nil.
func (r *Recorder) write(e Entry, m []byte) {
	if size := len(m); size > r.maxMessage {
		e.Omitted, m = size, withoutContent(m)
	}
	if m != nil {
		e.Message = redact.JSON(m, r.rules)
	}
	if len(e.Message) > 0 && e.Message[0] != '{' { // nested too deeply to be redacted
		e.Omitted, e.Message = len(m), withoutContent(m)
	}
	for key, value := range e.Header { // mirrors an argument, which may be redacted
		if quoted := jsonscan.AppendString(nil, value); !bytes.Contains(e.Message, quoted[1:len(quoted)-1]) {
			e.Header[key] = redact.Redacted
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	e.Time = time.Now().UTC()
	_, r.err = r.w.Write(e.append(nil))
}

// fail writes an entry with a failure.
func (r *Recorder) fail(e Entry, f Failure) {
	f.Text = r.rules.Text(f.Text)
	e.Failure = &f
	r.write(e, nil)
}

// withoutContent returns a message without params or result.
func withoutContent(message []byte) []byte {
	m, err := transport.ParseMessage(message)
	switch {
	case err != nil:
		return transport.AppendNotification(nil, "unreadable", nil)
	case m.IsResponse():
		return transport.AppendResult(nil, m.ID, []byte("{}"))
	}
	return transport.AppendRequest(nil, m.ID, m.Method, nil)
}

// encode returns the JSON encoding of a received message.
func encode(m *transport.Message) []byte {
	switch {
	case m.Error != nil:
		return transport.AppendError(nil, m.ID, m.Error)
	case m.Method == "":
		return transport.AppendResult(nil, m.ID, m.Result)
	}
	return transport.AppendRequest(nil, m.ID, m.Method, m.Params)
}

// Transport returns a transport that records the messages of t. Each connection is recorded
// as a separate session. Transport panics if t is nil.
func (r *Recorder) Transport(t transport.Transport) transport.Transport {
	r.mustBeMade()
	if t == nil {
		panic("recording: Recorder.Transport: the transport is nil")
	}
	return &recordedTransport{r, t}
}

type recordedTransport struct {
	recorder *Recorder
	next     transport.Transport
}

func (t *recordedTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c := &recordedConn{recorder: t.recorder, session: strconv.FormatInt(t.recorder.connections.Add(1), 10)}
	c.era.Store(Modern)
	conn, err := t.next.Connect(ctx, func(m *transport.Message) {
		c.received(m)
		receive(m)
	})
	if err != nil {
		t.recorder.fail(c.entry(ToClient), Failure{Kind: kindOf(err), Text: err.Error(), Ended: true})
		return nil, err
	}
	c.Conn = conn
	c.stream.Store(conn.Info().Ordered)
	return c, nil
}

// recordedConn is a connection whose messages are recorded.
type recordedConn struct {
	transport.Conn
	recorder *Recorder
	session  string
	stream   atomic.Bool
	era      atomic.Value // of the last message that was sent
}

func (c *recordedConn) entry(d Direction) Entry {
	return Entry{Direction: d, Era: c.era.Load().(Era), Session: c.session, Stream: c.stream.Load()}
}

// sent records a message to the server, and returns its entry without the message.
func (c *recordedConn) sent(m *transport.Outgoing) Entry {
	c.era.Store(eraOf(m.Version))
	e := c.entry(ToServer)
	if len(m.Headers) > 0 {
		e.Header = map[string]string{}
		for _, p := range m.Headers {
			e.Header[p.Key] = p.Value
		}
	}
	c.recorder.write(e, m.Body)
	e.Header = nil
	return e
}

// received records a message that is not the response to a call.
func (c *recordedConn) received(m *transport.Message) {
	e := c.entry(ToClient)
	e.About = m.About
	switch {
	case m.Err != nil: // the call that it answers fails; others have no effect
	case m.Lost:
		c.recorder.fail(e, Failure{Kind: Lost})
	default:
		c.recorder.write(e, encode(m))
	}
}

func (c *recordedConn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	e := c.sent(m)
	r, err := c.Conn.Call(ctx, m)
	if err == nil {
		e.Direction = ToClient
		c.recorder.write(e, encode(r))
		return r, nil
	}
	f := Failure{ID: m.ID, Kind: kindOf(err), Text: err.Error(), Ended: c.Err() != nil}
	e.Direction = ToClient
	switch {
	case ctx.Err() != nil:
		f.Kind, e.Direction = Cancelled, ToServer
	case f.Kind == Closed:
		e.Direction = ToServer
	}
	c.recorder.fail(e, f)
	return nil, err
}

func (c *recordedConn) Send(ctx context.Context, m *transport.Outgoing) error {
	c.sent(m)
	return c.Conn.Send(ctx, m)
}
