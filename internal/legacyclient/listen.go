// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A filter selects the changes that a subscription covers.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitzero"`
	Prompts   bool     `json:"promptsListChanged,omitzero"`
	Resources bool     `json:"resourcesListChanged,omitzero"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// A listener is a subscription of the client.
type listener struct {
	id transport.ID

	// Guarded by session.mu:
	covered        filter // the requested resources; once acknowledged, the accepted filter
	isAcknowledged bool
	early          []transport.Message // earlier changes, without duplicates, at most maxURIs
}

// maxURIs limits the resources of one subscription.
const maxURIs = 1000

// listen serves subscriptions/listen. It delivers the server's unsolicited notifications
// and the updates of subscribed resources until ctx is done or the connection has ended.
func (s *session) listen(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	var wanted filter
	if err := strictjson.Unmarshal(jsonscan.Member(jsonscan.Member(m.Body, "params"), "notifications"), &wanted); err != nil {
		return errorResponse(m.ID, &transport.Error{Code: codeInvalidParams, Message: "params.notifications is not a filter: " + err.Error()}), nil
	}
	if n := len(wanted.URIs); n > maxURIs {
		message := fmt.Sprintf("params.notifications.resourceSubscriptions has %d URIs; the limit is %d", n, maxURIs)
		return errorResponse(m.ID, &transport.Error{Code: codeInvalidParams, Message: message}), nil
	}
	l := &listener{id: m.ID, covered: filter{URIs: wanted.URIs}}
	s.addListener(l) // the server may send an update before it responds to resources/subscribe
	defer s.removeListener(l)
	accepted, err := s.accept(ctx, wanted)
	defer s.unsubscribeLater(ctx, accepted.URIs)
	if err != nil {
		return nil, err
	}
	s.acknowledge(l, accepted)
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	case <-s.wire.Done():
		return nil, s.wire.Err()
	}
}

// accept subscribes to the resources of a filter and returns the part of the filter that
// the server supports: nothing if it has no stream for notifications.
func (s *session) accept(ctx context.Context, wanted filter) (accepted filter, err error) {
	if s.wire.Info().NoStream {
		s.warnNoStream(ctx)
		return filter{}, nil
	}
	caps := s.described().capabilities
	accepted = caps.announced()
	accepted.Tools = accepted.Tools && wanted.Tools
	accepted.Prompts = accepted.Prompts && wanted.Prompts
	accepted.Resources = accepted.Resources && wanted.Resources
	if !caps.Resources.Subscribe {
		return accepted, nil
	}
	for _, uri := range wanted.URIs {
		err := s.subscribe(ctx, uri)
		_, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil:
			accepted.URIs = append(accepted.URIs, uri)
		case ctx.Err() != nil || !refused: // a failed connection is not a refusal
			return accepted, err
		}
	}
	return accepted, nil
}

// warnNoStream logs, once for a connection, that subscriptions receive nothing.
func (s *session) warnNoStream(ctx context.Context) {
	s.noStream.Do(func() {
		s.conn.opts.Logger.WarnContext(ctx, "mcp: the server cannot report changes: it has no stream for messages of its own, so subscriptions receive nothing; list and read again from time to time",
			"server", s.wire.Info().Peer)
	})
}

// announced returns the lists for which the server sends change notifications.
func (c *capabilities) announced() filter {
	return filter{Tools: c.Tools.ListChanged, Prompts: c.Prompts.ListChanged, Resources: c.Resources.ListChanged}
}

// covers reports whether f covers a change of a list or, if method is noteUpdated, of the
// resource uri. A subscribed URI that ends in a slash covers all resources below it.
func (f *filter) covers(method, uri string) bool {
	switch method {
	case noteToolsChanged:
		return f.Tools
	case notePromptsChanged:
		return f.Prompts
	case noteResourcesChanged:
		return f.Resources
	case noteUpdated:
		return slices.ContainsFunc(f.URIs, func(subscribed string) bool {
			return subscribed == uri || strings.HasSuffix(subscribed, "/") && strings.HasPrefix(uri, subscribed)
		})
	}
	return false
}

func (s *session) addListener(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l.id] = l
}

func (s *session) removeListener(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l.id)
}

// acknowledge delivers the acknowledgement of a subscription, followed by the changes that
// arrived earlier. It also includes changes that arrive while the acknowledgement is being
// delivered, because the client may have caused them.
func (s *session) acknowledge(l *listener, accepted filter) {
	s.mu.Lock()
	l.covered = accepted
	s.mu.Unlock()
	s.deliver(l, noteAcknowledged, json.RawMessage(`{"notifications":`+string(strictjson.MustMarshal(&accepted))+`}`))
	s.mu.Lock()
	early := l.early
	l.isAcknowledged, l.early = true, nil
	s.mu.Unlock()
	for _, m := range early {
		if accepted.covers(m.Method, text(jsonscan.Member(m.Params, "uri"))) {
			s.deliver(l, m.Method, m.Params)
		} else {
			s.conn.deliver(&m)
		}
	}
}

// announce passes a notification to the subscriptions that cover it, and reports whether
// there are any.
func (s *session) announce(m *transport.Message) bool {
	uri := text(jsonscan.Member(m.Params, "uri"))
	kept := false
	s.mu.Lock()
	var concerned []*listener
	for _, l := range s.listeners {
		switch {
		case !l.covered.covers(m.Method, uri):
		case l.isAcknowledged:
			concerned = append(concerned, l)
		case l.bufferEarly(*m):
			kept = true
		}
	}
	s.mu.Unlock()
	for _, l := range concerned {
		s.deliver(l, m.Method, m.Params)
	}
	return kept || len(concerned) > 0
}

// bufferEarly stores a change until the subscription is acknowledged. It returns false if there is
// no room.
func (l *listener) bufferEarly(m transport.Message) bool {
	isSame := func(other transport.Message) bool {
		return other.Method == m.Method && bytes.Equal(other.Params, m.Params)
	}
	switch {
	case slices.ContainsFunc(l.early, isSame):
	case len(l.early) < maxURIs:
		l.early = append(l.early, m)
	default:
		return false
	}
	return true
}

// deliver delivers a notification on a subscription. Params may be nil.
func (s *session) deliver(l *listener, method string, params json.RawMessage) {
	labelled := append(jsonscan.AppendKey([]byte(`{"_meta":{`), metaSubscriptionID), l.id.String()...)
	labelled = append(labelled, '}')
	if jsonscan.IsObject(params) {
		labelled = jsonscan.AppendMembers(labelled, params, "_meta")
	} else {
		labelled = append(labelled, '}')
	}
	s.conn.deliver(&transport.Message{Method: method, Params: labelled, About: l.id})
}

// announceEverything announces a change of every list and every subscribed resource,
// because notifications may have been lost.
func (s *session) announceEverything() {
	var lists filter
	if server := s.described(); server != nil {
		lists = server.capabilities.announced()
	}
	s.mu.Lock()
	uris := slices.Sorted(maps.Keys(s.subscribed))
	s.mu.Unlock()
	for _, method := range []string{noteToolsChanged, notePromptsChanged, noteResourcesChanged} {
		if lists.covers(method, "") {
			s.receiveNotification(&transport.Message{Method: method})
		}
	}
	for _, uri := range uris {
		params := strictjson.MustMarshal(map[string]string{"uri": uri})
		s.receiveNotification(&transport.Message{Method: noteUpdated, Params: params})
	}
}
