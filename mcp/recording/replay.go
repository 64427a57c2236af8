// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp/transport"
)

// ReplayOptions configure a [Replay]. Nil means the zero ReplayOptions.
type ReplayOptions struct {
	// If AnyOrder is set, the answer to a client message is found by its method and
	// arguments. If the recording has several answers, they are given in order, and the
	// last one repeats. If AnyOrder is not set, the client must send the messages in the
	// order of the recording, except that messages between which the server sent nothing
	// may come in any order. AnyOrder has no effect on [Replay.Drive].
	AnyOrder bool
	// Ignore reports whether the member at path may differ from the recording. Examples of
	// paths are params.arguments.seed and result.content[0].text. Nil means that no member
	// may differ.
	Ignore func(path string) bool
	// Redaction are the rules with which the conversation was recorded. Received messages
	// are redacted before they are compared. Nil means only the rules that always apply.
	Redaction *Redaction
}

// A Replay takes the place of one side of a recorded conversation. It is safe for
// concurrent use, but serves only one conversation. It must be created by [NewReplay].
type Replay struct {
	opts     ReplayOptions
	rules    *redact.Rules
	sessions []*session

	mu        sync.Mutex
	connected int   // number of sessions used
	err       error // the first message that did not match
}

// A session is the part of a recording that belongs to one connection. A strict replay
// accepts messages in any order if the server sent nothing between them: a client may send
// them from several goroutines. It does not hold back unsolicited messages, because nothing
// says what they waited for.
type session struct {
	entries []*Entry
}

// NewReplay returns a Replay of a recording. opts may be nil. NewReplay panics if rec is nil.
func NewReplay(rec *Recording, opts *ReplayOptions) *Replay {
	if rec == nil {
		panic("recording: NewReplay: the recording is nil")
	}
	r := new(Replay)
	if opts != nil {
		r.opts = *opts
	}
	r.rules = r.opts.Redaction.rules()
	byName := map[string]*session{}
	for i := range rec.entries {
		e := &rec.entries[i]
		s := byName[e.Session]
		if s == nil {
			s = new(session)
			byName[e.Session] = s
			r.sessions = append(r.sessions, s)
		}
		s.entries = append(s.entries, e)
	}
	return r
}

// mustBeMade panics unless the Replay was created by NewReplay.
func (r *Replay) mustBeMade() {
	made.Check(r != nil && r.rules != nil, "recording: a Replay", "NewReplay")
}

// Err returns the error for the first client message that did not match the recording, or
// nil if all have matched so far.
func (r *Replay) Err() error {
	r.mustBeMade()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// fail returns err and records it if it is the first error.
func (r *Replay) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return err
}

// nextSession returns the next session of the recording.
func (r *Replay) nextSession() (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connected == len(r.sessions) {
		return nil, fmt.Errorf("recording: the client connects %d times, and only %d times in the recording", r.connected+1, len(r.sessions))
	}
	r.connected++
	return r.sessions[r.connected-1], nil
}

// redacted parses a message as a recorder would have written it.
func (r *Replay) redacted(message []byte) (transport.Message, error) {
	return transport.ParseMessage(redact.JSON(message, r.rules))
}

// errOmitted is the error for a message whose content was not recorded.
var errOmitted = errors.New("the message was too long to be recorded")
