// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/hints"
)

// Options configure a [Store]. A nil *Options is equivalent to the zero Options.
type Options struct {
	// Namespace separates servers that share one NATS account. All replicas of a server
	// must use the same one. It has up to 64 letters, digits, dashes and underscores. ""
	// means "psi".
	Namespace string
	// Replicas is the number of servers that store the stream: 1, 3 or 5. 0 means the
	// number of the existing stream, or 1 if it is created.
	Replicas int
	// InMemory stores a new stream in the memory of the servers instead of in files. A
	// stream is empty after all servers that store it have restarted. In a cluster, it then
	// assigns the same versions again, which violates the contract of package
	// store: use three Replicas there.
	InMemory bool
	// MaxBytes limits the size of the stream when it is created. 0 means 1 GiB.
	MaxBytes int64
	// Timeout bounds every operation, including the time to reconnect. It is at most 30
	// seconds. 0 means 10 seconds.
	Timeout time.Duration
}

// duplicates is how long a server recognizes a repeated write. It bounds Options.Timeout.
const duplicates = 30 * time.Second

// maxQueue is the number of messages that may be queued in one subscription. It is more than
// in memory, because they arrive in bursts.
const maxQueue = 1024

var namespacePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Replicas < 0 || opts.MaxBytes < 0 || opts.Timeout < 0 {
		return opts, fmt.Errorf("natsstore: an option is negative: %+v", opts)
	}
	opts.Namespace = cmp.Or(opts.Namespace, "psi")
	if !namespacePattern.MatchString(opts.Namespace) {
		return opts, fmt.Errorf("natsstore: the namespace %q must have 1 to 64 letters, digits, dashes and underscores", opts.Namespace)
	}
	if opts.Timeout > duplicates {
		return opts, fmt.Errorf("natsstore: Options.Timeout is %v, at most %v are possible", opts.Timeout, duplicates)
	}
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 1<<30)
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	return opts, nil
}

// A Store is a [store.Store] in NATS JetStream. It is safe for concurrent use.
type Store struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	opts   Options
	values jetstream.Stream
	status chan nats.Status
	peers  *nats.Subscription        // responds to other stores
	down   atomic.Pointer[time.Time] // when the connection was lost; nil if there is one

	restoring atomic.Bool // true while the stream is created again
	publisher hints.Publisher

	mu        sync.Mutex // locked before the mutex of a queue
	listening map[*subscription]struct{}
}

var _ store.Store = (*Store)(nil)

// Open creates the stream if it is missing, checks it otherwise, and returns a store that uses the
// connection. opts may be nil. Close the store before the connection.
//
// It fails if JetStream is not enabled, if an existing stream does not have what the store
// needs, or if a missing stream cannot be created. The error says what to do.
func Open(ctx context.Context, nc *nats.Conn, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("natsstore: %w", err)
	}
	s := &Store{
		nc: nc, js: js, opts: o,
		listening: map[*subscription]struct{}{},
	}
	s.restoring.Store(true)
	if s.values, err = s.openStream(ctx, o.stream()); err != nil {
		return nil, err
	}
	s.restoring.Store(false)
	if s.peers, err = s.answerPeers(); err != nil {
		return nil, err
	}
	s.status = nc.StatusChanged()
	go s.watch()
	return s, nil
}

// Close ends all subscriptions. It does not close the connection.
func (s *Store) Close() error {
	s.nc.RemoveStatusListener(s.status) // ends watch
	_ = s.peers.Unsubscribe()           // it fails only if the connection has ended
	s.mu.Lock()
	var open []*subscription
	for sub := range s.listening {
		open = append(open, sub)
	}
	s.mu.Unlock()
	var errs []error
	for _, sub := range open {
		errs = append(errs, sub.Close())
	}
	return errors.Join(errs...)
}

// watch follows the state of the connection until Close. Subscriptions lose messages when
// the connection breaks.
func (s *Store) watch() {
	for status := range s.status {
		if status == nats.CONNECTED {
			s.down.Store(nil)
		} else if s.down.Load() == nil {
			now := time.Now()
			s.down.Store(&now)
		}
		s.lose()
		if status == nats.CONNECTED {
			go s.reportLossAfterReconnect()
		}
	}
}

// lose reports lost messages to all subscriptions.
func (s *Store) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.listening {
		sub.Lose()
	}
}

// reportLossAfterReconnect reports lost messages once all servers of the cluster know of the renewed
// subscriptions.
func (s *Store) reportLossAfterReconnect() {
	if s.nc.ConnectedClusterName() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	_ = s.waitForPeers(ctx) // it fails if the connection has broken again
	s.lose()
}

// forever is a TTL of 146 years, which counts as no TTL: servers add a TTL to the time
// since 1970, which must not overflow.
const forever time.Duration = math.MaxInt64 / 2

// seconds rounds a TTL up to whole seconds, the unit that servers use.
func seconds(ttl time.Duration) time.Duration {
	return (ttl + time.Second - 1).Truncate(time.Second)
}
