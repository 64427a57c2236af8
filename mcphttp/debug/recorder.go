// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// Limits on what is remembered: completed requests, and for each of them, in bytes, names chosen
// by clients, error texts, and arguments and results. All together are at most 26 MiB.
const (
	maxRecent = 200
	maxName   = 256
	maxError  = 4 << 10
	maxValue  = 64 << 10 // also of other values that are shown; a person reads no more
)

// A recorder records the requests in flight, the most recently completed requests, and the number
// and durations of requests. Requests that began before the first view are counted but not
// shown: recording them would cost every request a lock and an allocation.
type recorder struct {
	active    atomic.Bool // see whileActive
	installed sync.Once   // installs whileActive on a connection
	values    bool
	seed      maphash.Seed

	mu       sync.Mutex
	changed  uint64 // number of changes so far
	last     uint64 // number of the last request
	inFlight map[uint64]*record
	recent   []*record // a ring; the next one replaces recent[oldest] when it is full
	oldest   int
	traffic  series
	texts    texts
	rounds   map[uint64]int // by the hash of a requestState: the round that it begins
}

// maxRounds is the maximum number of entries of rounds.
const maxRounds = 1024

func newRecorder(values bool) *recorder {
	return &recorder{
		values: values, seed: maphash.MakeSeed(),
		inFlight: map[uint64]*record{}, rounds: map[uint64]int{},
	}
}

// A record is what is remembered about one request. It does not reference the request, which may
// be large.
type record struct {
	number       uint64
	method, name string
	version      string
	session      string // its ID; "" if there is none
	isLegacy     bool
	remote       string
	principal    *mcp.Principal
	sender       string // an Implementation as JSON; "" if unknown or too long
	round        int
	start        time.Time
	arguments    json.RawMessage // nil if values are not shown, or if they are too long
	cancel       context.CancelCauseFunc
	isCancelled  atomic.Bool // from the page

	// Set when the request has ended.
	duration time.Duration
	outcome  string
	code     int
	err      string
	result   json.RawMessage
}

type quietKey struct{}

// quietly returns a context for requests that the page makes for its own display, which are not
// recorded.
func quietly(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietKey{}, true)
}

// middleware records the requests that next serves.
func (r *recorder) middleware(next mcp.Handler) mcp.Handler { return &recorded{r, next} }

// whileActive is middleware that records while r is active. It is for handlers whose middleware
// cannot be removed.
func (r *recorder) whileActive(next mcp.Handler) mcp.Handler {
	recorded := r.middleware(next)
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if !r.active.Load() {
			return next.ServeMCP(ctx, req)
		}
		return recorded.ServeMCP(ctx, req)
	})
}

type recorded struct {
	recorder *recorder
	next     mcp.Handler
}

// ServeMCP implements [mcp.Handler].
func (h *recorded) ServeMCP(ctx context.Context, req *mcp.Request) (res mcp.Result, err error) {
	r := h.recorder
	if req.Principal != nil && ctx.Value(quietKey{}) != nil { // requests of the page have a principal
		return h.next.ServeMCP(ctx, req)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rec := r.startRecord(ctx, req, cancel)
	returned := false
	defer func() { r.end(ctx, rec, res, err, !returned) }()
	res, err = h.next.ServeMCP(ctx, req)
	returned = true
	if rec.isCancelled.Load() && errors.Is(cmp.Or(err, toolError(res)), context.Canceled) {
		res, err = nil, errCancelled
	}
	return res, err
}

// toolError returns the error of a failed tool call, or nil if there is none.
func toolError(res mcp.Result) error {
	if tool, ok := res.(*mcp.CallToolResult); ok && tool.IsError {
		return tool.Err()
	}
	return nil
}

// errCancelled is the error of a request that was cancelled from the page.
var errCancelled = &mcp.Error{Code: mcp.CodeInternalError, Message: "the operator of the server cancelled the request", Cause: context.Canceled}

func (r *recorder) startRecord(ctx context.Context, req *mcp.Request, cancel context.CancelCauseFunc) *record {
	rec := &record{principal: req.Principal, start: time.Now(), cancel: cancel, round: 1}
	if s := mcp.SessionFromContext(ctx); s != nil {
		rec.session, rec.isLegacy = s.ID(), true
	}
	if hr := mcphttp.RequestFromContext(ctx); hr != nil {
		rec.remote = hr.RemoteAddr
	}
	if r.values && len(req.Params()) <= maxValue {
		rec.arguments = bytes.Clone(req.Params())
	}
	state, name := stateOf(req), req.Name()
	if strings.HasPrefix(req.Method, "tasks/") {
		name = redact.Session(name) // as in the list of tasks
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.method, rec.name, rec.version = r.texts.keep(req.Method), r.texts.keep(name), r.texts.keep(req.Version())
	if sender := core.Sender(req); len(sender) <= maxName {
		rec.sender = r.texts.keep(string(sender))
	}
	if state != nil {
		rec.round = max(2, r.rounds[maphash.Bytes(r.seed, state)])
	}
	r.last++
	r.changed++
	rec.number = r.last
	r.inFlight[rec.number] = rec
	return rec
}

// stateOf returns the requestState that a request brings back, or nil if there is none.
func stateOf(req *mcp.Request) []byte {
	if !bytes.Contains(req.Params(), []byte(`"requestState"`)) {
		return nil
	}
	return jsonscan.Member(req.Params(), "requestState")
}

func (r *recorder) end(ctx context.Context, rec *record, res mcp.Result, err error, panicked bool) {
	duration := time.Since(rec.start)
	o := outcomeOf(ctx, res, err, panicked)
	if rec.isCancelled.Load() {
		o.kind = "cancelled"
	}
	text := o.text(r.values)
	var result json.RawMessage
	if r.values && res != nil {
		if raw, err := mcp.MarshalResult(res); err == nil && len(raw) <= maxValue {
			result = raw
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed++
	delete(r.inFlight, rec.number)
	if asked, ok := res.(*mcp.InputRequired); ok && asked.RequestState != nil {
		r.noteRoundLocked(*asked.RequestState, rec.round+1)
	}
	rec.duration, rec.outcome, rec.code, rec.err, rec.result = duration, o.kind, o.code, text, result
	rec.cancel = nil
	if rec.method != mcp.MethodListen {
		r.traffic.add(rec.start.Add(duration), duration, o.isFailure)
	}
	r.rememberLocked(rec)
}

func (r *recorder) rememberLocked(rec *record) {
	if len(r.recent) < maxRecent {
		r.recent = append(r.recent, rec)
		return
	}
	r.recent[r.oldest] = rec
	r.oldest = (r.oldest + 1) % maxRecent
}

// noteRoundLocked records the round that the request with the given state begins.
func (r *recorder) noteRoundLocked(state string, round int) {
	if len(r.rounds) >= maxRounds {
		clear(r.rounds)
	}
	quoted, err := json.Marshal(state)
	if err == nil {
		r.rounds[maphash.Bytes(r.seed, quoted)] = round
	}
}

// changes returns a number that increases whenever a request begins or ends.
func (r *recorder) changes() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// requests returns the requests in flight, oldest first, and the completed requests, most recent
// first.
func (r *recorder) requests() (inFlight, recent []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.inFlight {
		inFlight = append(inFlight, rec)
	}
	slices.SortFunc(inFlight, func(a, b *record) int { return cmp.Compare(a.number, b.number) })
	recent = slices.Concat(r.recent[r.oldest:], r.recent[:r.oldest])
	slices.Reverse(recent)
	return inFlight, recent
}

// find returns a request by its number, or nil if it is not remembered.
func (r *recorder) find(number uint64) (rec *record, inFlight bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec := r.inFlight[number]; rec != nil {
		return rec, true
	}
	for _, rec := range r.recent {
		if rec.number == number {
			return rec, false
		}
	}
	return nil, false
}

// cancelRequest cancels a request in flight, and reports whether it did.
func (r *recorder) cancelRequest(number uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.inFlight[number]
	if rec == nil {
		return false
	}
	rec.isCancelled.Store(true)
	rec.cancel(errCancelled)
	return true
}

// seconds returns the traffic of the last two minutes.
func (r *recorder) seconds(now time.Time) []second {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.traffic.last(now)
}

// texts are names shared by several requests. They are copies, because a substring of a message
// would keep the whole message in memory.
type texts map[string]string

// maxTexts is the maximum number of texts kept for later requests.
const maxTexts = 1024

// keep returns a copy of the beginning of s.
func (t *texts) keep(s string) string {
	if kept, ok := (*t)[s]; ok {
		return kept
	}
	if len(*t) >= maxTexts || *t == nil {
		*t = texts{}
	}
	kept := clip(s, maxName)
	if len(s) <= maxName {
		(*t)[kept] = kept
	}
	return kept
}

// clip returns a copy of the beginning of s.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
