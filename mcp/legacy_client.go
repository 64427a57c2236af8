// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/legacyclient"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// connectRemembered connects to a server with the version pinned by the options or remembered
// from an earlier connection, if any.
func (c *Client) connectRemembered(ctx context.Context, t transport.Transport) (*Conn, error) {
	if c.opts.Version != "" {
		return c.connect(ctx, t, c.opts.Version)
	}
	version := c.versions.get(t)
	if slices.Contains(LegacyVersions(), version) { // only a legacy version is used without probing
		trace(traceOf(ctx).CacheHit, mcptrace.CacheInfo{Kind: "version"})
	}
	conn, err := c.connect(ctx, t, version)
	switch {
	case err != nil:
	case conn.legacy.IsGuess():
		c.versions.set(t, "")
	default:
		c.versions.set(t, conn.Version())
	}
	return conn, err
}

// A translator makes an older server look like a server of the newest revision. Its Conn is
// nil if ClientOptions.Version excludes the older revisions.
type translator struct{ *legacyclient.Conn }

// connectTranslated connects to a server of any revision.
func (c *Conn) connectTranslated(ctx context.Context, t transport.Transport, version string) (transport.Conn, error) {
	o := &c.client.opts
	isPinned := o.Version != ""
	if slices.Contains(ModernVersions(), version) {
		if isPinned {
			return t.Connect(ctx, c.receive)
		}
		version = ""
	}
	conn, err := legacyclient.Connect(ctx, t, c.receive, legacyCallbacks{c}, legacyclient.Options{
		Version: version, Pinned: isPinned, Capabilities: mustMarshal(o.capabilities(o.Forward)),
		MayAsk: mayAsk, Forward: o.Forward, MaxRounds: o.maxRounds, MaxQuestions: o.maxQuestions, AnswerAnytime: o.AnswerAnytime, Logger: o.Logger,
	})
	c.legacy.Conn = conn
	return conn, err
}

// refusedHandshake says of an error that consists of the server's words only what was refused.
func refusedHandshake(err error) error {
	if refused := codedError(err); refused != nil && refused.Error() == err.Error() {
		return refusedError("initialize", err)
	}
	return err
}

// direct returns the wire to a modern server, for which there is nothing to translate, or nil
// if the connection keeps the wire that it has.
func (t translator) direct() transport.Conn {
	if t.Conn == nil || t.Version() != "" {
		return nil
	}
	return t.Unwrap()
}

// close closes a connection, and an earlier one that the translator has replaced.
func (t translator) close(wire transport.Conn) error {
	if t.Conn == nil {
		return wire.Close()
	}
	return t.Close()
}

// era returns the revision of the server and the reason why it was chosen.
func (t translator) era() mcptrace.EraInfo {
	if t.Conn == nil {
		return mcptrace.EraInfo{Version: LatestVersion}
	}
	return mcptrace.EraInfo{Version: cmp.Or(t.Version(), LatestVersion), Reason: t.Reason(), Guess: t.IsGuess()}
}

// rootsChanged notifies an older server that the roots of the client have changed.
func (t translator) rootsChanged(ctx context.Context) error {
	if t.Conn == nil {
		return nil
	}
	return t.RootsChanged(ctx)
}

// noteAsked prepares a result whose questions an older server is waiting for, so that the server
// can be told if they will not be answered.
func (t translator) noteAsked(res Result) {
	asked, ok := res.(*InputRequired)
	if ok && t.Conn != nil && asked.RequestState != nil {
		asked.abandon = func() { t.Abandon(*asked.RequestState) }
	}
}

// legacyCallbacks implements [legacyclient.Client].
type legacyCallbacks struct{ conn *Conn }

func (b legacyCallbacks) NextID() ID { return b.conn.nextID() }

func (b legacyCallbacks) CheckDiscovery(result json.RawMessage) error {
	d, _, err := decodeDiscovery(result)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(d.SupportedVersions, func(v string) bool { return slices.Contains(ModernVersions(), v) }) {
		// Some servers answer server/discover but serve only requests of older revisions.
		return fmt.Errorf("%w: the answer to %s names no version that this client speaks", transport.ErrNotUnderstood, MethodDiscover)
	}
	return nil
}

func (b legacyCallbacks) CheckRequest(m *transport.Message) *transport.Error {
	if _, err := requestOf(m); err != nil {
		return toWire(err)
	}
	return nil
}

func (b legacyCallbacks) Answers(method string, params json.RawMessage) bool {
	return b.conn.client.answers(InputRequest{Method: method, Params: params})
}

// Answer pauses the timeouts of all calls: the question may be about any of them.
func (b legacyCallbacks) Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *transport.Error) {
	resume := b.conn.pauseCalls()
	defer resume()
	answer, err := b.conn.answer(ctx, InputRequest{Method: method, Params: params})
	if err != nil {
		return nil, toWire(err)
	}
	return answer, nil
}

// pauseCalls pauses the timeouts of all calls in flight until resume is called.
func (c *Conn) pauseCalls() (resume func()) {
	c.mu.Lock()
	clocks := slices.Collect(maps.Keys(c.clocks))
	c.mu.Unlock()
	resumes := make([]func(), len(clocks))
	for i, clock := range clocks {
		resumes[i] = clock.Pause()
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

func (b legacyCallbacks) MayAsk(capabilities json.RawMessage, method string, params json.RawMessage) *transport.Error {
	caller := &Request{peer: peer{caps: capabilities}}
	if err := checkCapability(caller, InputRequest{Method: method, Params: params}); err != nil {
		return toWire(err)
	}
	return nil
}

func (b legacyCallbacks) Error(e *transport.Error) error { return fromWire(e) }

func (b legacyCallbacks) Withdrawn(reason string) error { return &CancelError{Reason: reason} }

func (b legacyCallbacks) ProbeSent(ctx context.Context, method string) {
	trace(traceOf(ctx).ProbeSent, mcptrace.ProbeInfo{Method: method})
}

func (b legacyCallbacks) Retrying(ctx context.Context, method string, err error) {
	_, t := inheritTrace(ctx, b.conn.trace)
	if t != nil {
		trace(t.Retry, mcptrace.RetryInfo{Method: method, Err: err})
	}
}

func (b legacyCallbacks) Reconnecting(ctx context.Context, kind string, err error) {
	_, t := inheritTrace(ctx, b.conn.trace)
	if t != nil {
		trace(t.Reconnect, mcptrace.ReconnectInfo{Kind: kind, Err: err})
	}
}

func (b legacyCallbacks) LogDropped(why string, args ...any) { b.conn.logDropped(why, args...) }

// maxCachedVersions bounds how many versions a client remembers.
const maxCachedVersions = 256

// A versionCache holds the versions of servers, by transport.
type versionCache struct {
	mu       sync.Mutex
	versions map[transport.Transport]string
}

// get returns the version for a transport, or "" if it is unknown.
func (v *versionCache) get(t transport.Transport) string {
	if !reflect.ValueOf(t).Comparable() {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.versions[t]
}

// set sets the version for a transport, or removes it if version is "". If the cache is
// full, another version is dropped.
func (v *versionCache) set(t transport.Transport, version string) {
	if !reflect.ValueOf(t).Comparable() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == "" {
		delete(v.versions, t)
		return
	}
	if v.versions == nil {
		v.versions = map[transport.Transport]string{}
	}
	if _, known := v.versions[t]; !known && len(v.versions) >= maxCachedVersions {
		for other := range v.versions {
			delete(v.versions, other)
			break
		}
	}
	v.versions[t] = version
}
