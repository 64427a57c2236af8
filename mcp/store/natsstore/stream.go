// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamConfig returns the configuration of the stream that [Open] creates, for operators who
// create it in another way. It returns an error if the options are invalid. opts may be nil.
func StreamConfig(opts *Options) (jetstream.StreamConfig, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return jetstream.StreamConfig{}, err
	}
	return o.stream(), nil
}

// stream returns the configuration of the stream of values.
func (o *Options) stream() jetstream.StreamConfig {
	values := jetstream.StreamConfig{
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew, // a full store rejects data instead of dropping it
		Replicas:    max(o.Replicas, 1),
		MaxBytes:    o.MaxBytes,
		MaxMsgs:     -1,
		Duplicates:  duplicates,
		AllowMsgTTL: true,
		AllowDirect: o.Replicas <= 1, // any replica answers direct reads, even one that is behind
		Compression: jetstream.NoCompression,
		FirstSeq:    firstSequence(),
	}
	if o.InMemory {
		values.Storage = jetstream.MemoryStorage
	}
	values.Name, values.Description = "KV_"+o.Namespace, "values that replicas of an MCP server share"
	values.Subjects, values.MaxMsgsPerSubject, values.AllowRollup = []string{"$KV." + o.Namespace + ".>"}, 1, true
	return values
}

// openStream returns a stream, which it creates if it does not exist.
func (s *Store) openStream(ctx context.Context, want jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	err = s.try(ctx, func(ctx context.Context) error {
		stream, err = s.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = s.js.CreateStream(ctx, want)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // by another replica, at the same time
			stream, err = s.js.Stream(ctx, want.Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("natsstore: the stream %s cannot be opened or created (%d bytes, %d replicas; see StreamConfig): %w", want.Name, want.MaxBytes, want.Replicas, err)
	}
	has := stream.CachedInfo().Config
	if s.opts.Replicas != 0 && has.Replicas != s.opts.Replicas {
		return nil, fmt.Errorf("natsstore: the stream %s has %d replicas, Options.Replicas is %d: change one of them, as with nats stream edit", want.Name, has.Replicas, s.opts.Replicas)
	}
	if wrong := differences(&want, &has); len(wrong) > 0 {
		return nil, fmt.Errorf("natsstore: the stream %s cannot be used: %s", want.Name, strings.Join(wrong, "; "))
	}
	return stream, nil
}

// restore creates the stream again if it no longer exists, for example because it was in
// memory and its servers restarted. It does so on a goroutine; there is at most one at a time.
func (s *Store) restore() {
	if s.restoring.Swap(true) {
		return
	}
	go func() { // ends when the stream exists, or after Timeout
		defer s.restoring.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
		defer cancel()
		config := s.values.CachedInfo().Config
		if _, err := s.js.Stream(ctx, config.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
			config.FirstSeq = firstSequence()
			_, _ = s.js.CreateStream(ctx, config) // if it fails, later steps fail
		}
	}()
}

// firstSequence returns the first sequence number of a new stream. Versions are
// sequence numbers. A stream that is created again must not begin with numbers that
// were assigned before.
func firstSequence() uint64 { return uint64(time.Now().UnixMilli()) }

// differences describes how a stream differs from what the store needs.
func differences(want, has *jetstream.StreamConfig) (wrong []string) {
	for _, check := range []struct {
		ok   bool
		what string
	}{
		{slices.Equal(has.Subjects, want.Subjects), fmt.Sprintf("its subjects are %q, want %q", has.Subjects, want.Subjects)},
		{has.AllowMsgTTL, "it does not allow messages with a TTL, which need NATS 2.11 or later (allow_msg_ttl)"},
		{has.MaxMsgsPerSubject == want.MaxMsgsPerSubject, fmt.Sprintf("it keeps %d messages per subject, want %d", has.MaxMsgsPerSubject, want.MaxMsgsPerSubject)},
		{has.Discard == want.Discard, "it discards old messages when it is full, want new ones"},
		{has.Retention == want.Retention, "its retention is not by limits"},
		{!has.DenyDelete && !has.DenyPurge, "it denies deleting or purging messages"},
		{has.MaxAge == 0, "it has a maximum age of messages"},
		{has.Duplicates >= want.Duplicates, fmt.Sprintf("its duplicate window is %v, want %v or more", has.Duplicates, want.Duplicates)},
		{!has.AllowDirect || has.Replicas <= 1, "it has several replicas and allows direct reads, which can be out of date (allow_direct)"},
	} {
		if !check.ok {
			wrong = append(wrong, check.what)
		}
	}
	return wrong
}
