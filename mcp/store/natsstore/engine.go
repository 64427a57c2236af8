// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp/store"
)

// firstAttempt is the timeout of the first attempt, which doubles with each attempt that
// times out. retryDelay is the delay between two attempts.
const (
	firstAttempt = time.Second
	retryDelay   = 50 * time.Millisecond
)

// try calls step, which must be safe to repeat, until there is a response. It gives up
// after Options.Timeout, or immediately if there has been no connection for that long.
func (s *Store) try(ctx context.Context, step func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if since := s.down.Load(); since != nil && time.Since(*since) > s.opts.Timeout {
		return fmt.Errorf("natsstore: no connection to NATS since %s: %w", since.UTC().Format(time.RFC3339), s.connectionError())
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for wait := firstAttempt; ; {
		attempt, stop := context.WithTimeout(bounded, wait)
		err := step(attempt)
		if attempt.Err() != nil {
			wait *= 2
		}
		stop()
		if err == nil || !isTransient(err) {
			return contractError(err)
		}
		if isMissingStream(err) {
			s.restore()
		}
		if async.Sleep(bounded, retryDelay) == nil {
			continue
		}
		switch {
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return ctx.Err()
		case ctx.Err() != nil:
			return fmt.Errorf("%w; the last error of NATS: %w", ctx.Err(), err)
		}
		return fmt.Errorf("natsstore: no answer from NATS within %v: %w (the connection is %v; its last error: %w)", s.opts.Timeout, err, s.nc.Status(), s.connectionError())
	}
}

var errNone = errors.New("none")

// connectionError returns the last error of the connection.
func (s *Store) connectionError() error { return cmp.Or(s.nc.LastError(), errNone) }

// Error codes that package jetstream does not name.
const (
	codeAccountFull     jetstream.ErrorCode = 10002
	codeNotAvailable    jetstream.ErrorCode = 10008
	codeNotLeader       jetstream.ErrorCode = 10009
	codeNoResources     jetstream.ErrorCode = 10023
	codeMemoryFull      jetstream.ErrorCode = 10028
	codeStorageFull     jetstream.ErrorCode = 10047
	codeStoreFailed     jetstream.ErrorCode = 10077
	codeStillInProgress jetstream.ErrorCode = 10158
)

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains(codes, e.ErrorCode)
}

// isTransient reports whether repeating the operation may help: there was no response, or
// no leader.
func isTransient(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || isMissingStream(err) ||
		errors.Is(err, nats.ErrDisconnected) || hasCode(err, codeNotAvailable, codeNotLeader, codeStillInProgress)
}

// isMissingStream reports whether a stream has no leader, or does not exist.
func isMissingStream(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// contractError returns an error that wraps the matching error of package store, if any.
func contractError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload), hasCode(err, jetstream.JSErrCodeStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case hasCode(err, codeAccountFull, codeNoResources, codeMemoryFull, codeStorageFull),
		hasCode(err, codeStoreFailed) && strings.Contains(err.Error(), "exceeded"):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case isConflict(err):
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}

func isConflict(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// publish stores a message if the last one on its subject has the expected sequence number;
// 0 means that there must be none. Otherwise the error is store.ErrConflict. A TTL of 0 means none.
func (s *Store) publish(ctx context.Context, to jetstream.Stream, m *nats.Msg, expected uint64, ttl time.Duration) (sequence uint64, err error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(jetstream.MsgIDHeader, rand.Text())
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(expected, 10))
	if ttl > 0 && ttl < forever {
		m.Header.Set(jetstream.MsgTTLHeader, seconds(ttl).String())
	}
	isUncertain := false // an attempt without a response may have stored the message
	err = s.try(ctx, func(ctx context.Context) error {
		ack, err := s.js.PublishMsg(ctx, m)
		switch {
		case err == nil:
			sequence = ack.Sequence
		case !isMissingStream(err): // nothing was stored
			isUncertain = isUncertain || isTransient(err)
		}
		return err
	})
	if isUncertain && errors.Is(err, store.ErrConflict) {
		return s.resolve(ctx, to, m, expected)
	}
	return sequence, err
}

// resolve determines whether a conflict is with the message itself, which an attempt
// without a response may have stored: a standalone server compares sequence numbers before
// IDs.
func (s *Store) resolve(ctx context.Context, stream jetstream.Stream, m *nats.Msg, expected uint64) (sequence uint64, err error) {
	stored, err := s.next(ctx, stream, m.Subject, expected+1)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return 0, err
	case err == nil && stored.Header.Get(jetstream.MsgIDHeader) == m.Header.Get(jetstream.MsgIDHeader):
		return stored.Sequence, nil
	case err == nil && stored.Header.Get(jetstream.ExpectedLastSubjSeqHeader) == m.Header.Get(jetstream.ExpectedLastSubjSeqHeader):
		return 0, store.ErrConflict // it was stored instead of this one
	}
	return 0, errors.New("natsstore: the connection broke during a write, and it is unknown whether it was made")
}

// last returns the last message on a subject, or store.ErrNotFound. It asks the leader: any
// replica answers direct reads, also one that lacks what was confirmed as stored.
func (s *Store) last(ctx context.Context, stream jetstream.Stream, subject string) (m *jetstream.RawStreamMsg, err error) {
	return m, s.read(ctx, func(ctx context.Context) error {
		m, err = stream.GetLastMsgForSubject(ctx, subject)
		return err
	})
}

// next returns the first message on a subject with a sequence number of at least from, or
// store.ErrNotFound.
func (s *Store) next(ctx context.Context, stream jetstream.Stream, subject string, from uint64) (m *jetstream.RawStreamMsg, err error) {
	return m, s.read(ctx, func(ctx context.Context) error {
		m, err = stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		return err
	})
}

func (s *Store) read(ctx context.Context, step func(ctx context.Context) error) error {
	err := s.try(ctx, step)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return store.ErrNotFound
	}
	return err
}

// token encodes a key as a token of a subject. Letters, digits, dashes, underscores and
// slashes are unchanged; other bytes are written as =XX.
func token(key string) string {
	var t strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '/':
			t.WriteByte(c)
		default:
			fmt.Fprintf(&t, "=%02X", c)
		}
	}
	return t.String()
}
