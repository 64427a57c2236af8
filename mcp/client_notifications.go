// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/mcp/transport"
)

// Limits on the number and total size of the notifications queued for a function of the
// client.
const (
	maxNotes     = 4096
	maxNoteBytes = 16 << 20
)

// newNoteQueue returns a queue for calls to the client's functions.
func newNoteQueue(c *Conn) *serialQueue {
	q := newSerialQueue(maxNotes, c.logPanic)
	q.maxBytes = maxNoteBytes
	q.onDrop = func() {
		c.client.opts.Logger.Warn("mcp: notifications are dropped: the client's functions are too slow", "waiting", maxNotes, "bytes", maxNoteBytes)
	}
	return q
}

// callSafely calls a function supplied by the program. If it panics, the panic is logged
// and returned as an error.
func callSafely(logger *slog.Logger, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = logPanic(logger, v)
		}
	}()
	return fn()
}

// logPanic logs a panic of a function supplied by the program and returns an error for it.
func logPanic(logger *slog.Logger, v any) error {
	return panicked(context.Background(), &Request{call: new(call)}, v, logger)
}

func (c *Conn) logPanic(v any) { _ = logPanic(c.client.opts.Logger, v) }

// receiveNotification passes a notification to the call or the subscription that it belongs
// to, or to the client's functions. about is the ID of the request on whose stream the
// notification arrived, or zero if it is unknown.
func (c *Conn) receiveNotification(note *Request, about ID) {
	if note.Method == NotificationProgress {
		c.receiveProgress(note)
		return
	}
	if note.Method == NotificationToolsListChanged {
		c.tools.setStale(true)
	}
	if f := c.forwarderOf(note, about); f != nil && f.receive(note) {
		return
	}
	if note.Method == NotificationCancelled && c.endForwarder(note) {
		return
	}
	if note.Method == NotificationMessage && c.receiveLog(note, about) {
		return
	}
	c.enqueue(note)
}

// enqueue queues a call to the client's function for a notification.
func (c *Conn) enqueue(note *Request) {
	c.notes.add(len(note.Params()), func() { c.callFunction(note) })
}

func (c *Conn) callFunction(note *Request) {
	o := &c.client.opts
	switch {
	case note.Method == NotificationMessage && o.Log != nil:
		var p LoggingMessageParams
		if note.Decode(&p) == nil {
			o.Log(c.ctx, c, &p)
		}
	case o.Notification != nil:
		o.Notification(c.ctx, c, note)
	}
}

type progressKey struct{}

// WithProgress returns a context for one call whose progress notifications are passed to fn. fn
// is called in order, on a goroutine other than the connection's reader, and not after the call
// has returned. A nil fn undoes an earlier WithProgress.
func WithProgress(ctx context.Context, fn func(p *ProgressParams)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// A callListener receives the progress notifications and the log messages of one call.
type callListener struct {
	progress func(*ProgressParams)       // nil if only the clock needs progress
	log      func(*LoggingMessageParams) // nil if no log messages are wanted
	ownsLog  bool                        // log is called instead of ClientOptions.Log
	clock    *callclock.Clock            // nil if the call has no timeout
	queue    *serialQueue                // calls progress and log
}

// newCallListener returns a listener for a call whose progress or log messages are needed by
// the caller ([WithProgress], [WithLog]), by the sender of a forwarded request, or by the
// clock, and nil for any other call. The queue of the listener must be finished.
func (c *Conn) newCallListener(ctx context.Context, req *Request) *callListener {
	progress, clock, log := progressOf(ctx, req), callclock.FromContext(ctx), c.logListener(ctx, req)
	if progress == nil && clock == nil && log == nil {
		return nil
	}
	l := &callListener{progress: progress, log: log, ownsLog: callLogOf(ctx).fn != nil, clock: clock, queue: newNoteQueue(c)}
	l.queue.dropOldest = true
	return l
}

// progressOf returns the function for the progress of a request, or nil if progress is not
// needed.
func progressOf(ctx context.Context, req *Request) func(*ProgressParams) {
	if fn, ok := ctx.Value(progressKey{}).(func(*ProgressParams)); ok {
		return fn
	}
	if req.ProgressToken().IsZero() {
		return nil
	}
	return func(p *ProgressParams) { req.notifyProgress(ctx, p) }
}

// receiveProgress passes a progress notification to the listener of its call.
func (c *Conn) receiveProgress(note *Request) {
	p := new(ProgressParams)
	if note.Decode(p) != nil {
		return
	}
	l := c.listenerOf(p.ProgressToken)
	if l == nil {
		return
	}
	if l.clock != nil {
		l.clock.Reset()
	}
	if l.progress != nil {
		l.queue.add(len(note.Params()), func() { l.progress(p) })
	}
}

// listenerOf returns the listener of a call, or nil. Some servers send the token, an
// integer, as a string.
func (c *Conn) listenerOf(token ID) *callListener {
	integer, _ := transport.ParseID([]byte(strings.Trim(token.String(), `"`)))
	return c.inFlight.Get(integer.Canonical())
}

// withIncreasingProgress returns a context whose progress function is called only if
// progress increases. If the server asks questions about a call, the call is sent again and
// its handler reports progress from the start.
func withIncreasingProgress(ctx context.Context) context.Context {
	fn, _ := ctx.Value(progressKey{}).(func(*ProgressParams))
	if fn == nil {
		return ctx
	}
	var last *float64 // needs no lock: the calls do not overlap
	return WithProgress(ctx, func(p *ProgressParams) {
		if last != nil && p.Progress <= *last {
			return
		}
		last = &p.Progress
		fn(p)
	})
}

type callLogKey struct{}

// A callLog holds the arguments of [WithLog].
type callLog struct {
	level LoggingLevel
	fn    func(p *LoggingMessageParams) // nil if there is none
}

// WithLog returns a context for calls whose log messages are passed to fn instead of
// ClientOptions.Log. fn is called in order, on a goroutine other than the connection's
// reader, and not after the call has returned. level is the minimum level that the server
// sends; "" means ClientOptions.LogLevel. A nil fn undoes an earlier WithLog. If several
// calls to a legacy server are in flight, it may send messages that identify none of them;
// these are passed to ClientOptions.Log.
//
// Deprecated: the specification has deprecated logging by the protocol. Log to standard error or with
// OpenTelemetry. It works while a supported revision has log messages.
func WithLog(ctx context.Context, level LoggingLevel, fn func(p *LoggingMessageParams)) context.Context {
	// A call waits for its own messages. A connection waits for none: ClientOptions.Log may
	// itself call or close it.
	if fn == nil {
		level = ""
	}
	return context.WithValue(ctx, callLogKey{}, callLog{level, fn})
}

func callLogOf(ctx context.Context) callLog {
	l, _ := ctx.Value(callLogKey{}).(callLog)
	return l
}

// logLevel returns the log level to request from the server: that of the caller, of the
// forwarded request or of the client, in this order.
func (c *Conn) logLevel(ctx context.Context, req *Request) LoggingLevel {
	return cmp.Or(callLogOf(ctx).level, req.LogLevel(), c.client.opts.LogLevel)
}

// logListener returns the function for the log messages of a call: the caller's, or one
// that passes them to the sender of a forwarded request. It is nil if only
// ClientOptions.Log gets them.
func (c *Conn) logListener(ctx context.Context, req *Request) func(p *LoggingMessageParams) {
	level := c.logLevel(ctx, req)
	switch own := callLogOf(ctx); {
	case own.fn != nil:
		return func(p *LoggingMessageParams) {
			if p.Level.reaches(level) { // a legacy server may send more
				own.fn(p)
			}
		}
	case req.LogLevel() != "":
		return func(p *LoggingMessageParams) { req.notifyLog(ctx, p) }
	}
	return nil
}

// receiveLog passes a log message to the listener of its call, and reports whether the
// message need not be passed to ClientOptions.Log. If neither the stream nor the message
// identifies the call, the message is passed on only if it can belong to just one call.
func (c *Conn) receiveLog(note *Request, about ID) (handled bool) {
	var p LoggingMessageParams
	if note.Decode(&p) != nil {
		return false
	}
	own := c.client.opts.LogLevel
	if about.IsZero() {
		_ = p.Meta.Get(MetaProgressToken, &about)
	}
	if id, err := c.inFlight.Attribute(about); err == nil {
		if l := c.listenerOf(id); l != nil && l.log != nil {
			l.queue.add(len(note.Params()), func() { l.log(&p) })
			handled = own == "" || l.ownsLog
		}
	}
	return handled || !p.Level.reaches(own)
}

// reaches reports whether a message of level l is sent to a peer whose minimum level is
// lowest. It is true if either level is unknown.
func (l LoggingLevel) reaches(lowest LoggingLevel) bool {
	level, ok := l.Level()
	bound, bounded := lowest.Level()
	return !ok || !bounded || level >= bound
}

// notifyLog passes a log message to the sender of the request, if the sender requested
// messages of that level.
func (r *Request) notifyLog(ctx context.Context, p *LoggingMessageParams) {
	if r.LogLevel() == "" || !p.Level.reaches(r.LogLevel()) {
		return
	}
	params := *p
	params.Meta = withoutKey(p.Meta, MetaProgressToken)
	r.addProgressToken(&params)
	_ = r.Notify(ctx, NotificationMessage, &params) // the sender may be gone
}

// addProgressToken adds the progress token of the request, if any, to a log message. If all
// calls share a stream, nothing else identifies the call that a message belongs to. On stdio
// the specification does not label log messages, and a gateway needs a label as soon as two
// calls are in flight.
func (r *Request) addProgressToken(p *LoggingMessageParams) {
	if token := r.ProgressToken(); !token.IsZero() {
		p.Meta.Set(MetaProgressToken, token)
	}
}

// A serialQueue calls functions sequentially, on a goroutine that runs only while calls are
// queued. The queue is bounded by the number of calls and by the number of bytes that they
// refer to. A single call may exceed the bound on bytes.
type serialQueue struct {
	maxCalls   int
	maxBytes   int         // 0 means no bound
	dropOldest bool        // a full queue drops the oldest call instead of the new one
	onDrop     func()      // called with the lock held when dropping starts; may be nil
	onPanic    func(v any) // called with the value of each panic

	mu       sync.Mutex
	waiting  []queuedCall
	bytes    int
	running  bool      // the goroutine runs
	stopped  sync.Cond // signals that running became false; created by newSerialQueue
	held     bool      // calls are queued until start is called
	dropping bool      // calls were dropped since the last one ran
	closed   bool
}

type queuedCall struct {
	fn   func()
	size int
}

// newSerialQueue returns a queue. Set its options before using it.
func newSerialQueue(maxCalls int, onPanic func(v any)) *serialQueue {
	q := &serialQueue{maxCalls: maxCalls, onPanic: onPanic}
	q.stopped.L = &q.mu
	return q
}

// add queues a call that refers to size bytes. If the queue is full, a call is dropped; see
// dropOldest. If it is closed, add does nothing.
func (q *serialQueue) add(size int, fn func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for q.isFullFor(size) {
		if !q.dropping && q.onDrop != nil {
			q.onDrop()
		}
		q.dropping = true
		if !q.dropOldest {
			return
		}
		q.removeFirst()
	}
	q.waiting = append(q.waiting, queuedCall{fn, size})
	q.bytes += size
	q.run()
}

func (q *serialQueue) isFullFor(size int) bool {
	return len(q.waiting) >= q.maxCalls || q.maxBytes > 0 && len(q.waiting) > 0 && q.bytes+size > q.maxBytes
}

func (q *serialQueue) removeFirst() queuedCall {
	first := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.bytes -= first.size
	return first
}

// start starts running the calls of a held queue.
func (q *serialQueue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = false
	q.run()
}

// run starts the goroutine if it is needed. q.mu must be held.
func (q *serialQueue) run() {
	if q.running || q.held || len(q.waiting) == 0 {
		return
	}
	q.running = true
	go func() {
		for fn := q.next(); fn != nil; fn = q.next() {
			q.call(fn)
		}
	}()
}

// next returns the next function to call, or nil if the goroutine must exit.
func (q *serialQueue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running, q.waiting = false, nil
		q.stopped.Broadcast()
		return nil
	}
	q.dropping = false
	return q.removeFirst().fn
}

// call calls fn. A panic must not end the process.
func (q *serialQueue) call(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			q.onPanic(v)
		}
	}()
	fn()
}

// wait waits until no call is running or queued.
func (q *serialQueue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.stopped.Wait()
	}
}

// finish closes the queue and waits until all queued calls have run.
func (q *serialQueue) finish() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wait()
}

// close closes the queue and drops all queued calls. It does not wait for a running call,
// because that call may be the caller.
func (q *serialQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting = true, nil
}
