// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// A lookedAtContext is a context that calls looked whenever its Err method is called.
type lookedAtContext struct {
	context.Context
	looked func()
}

func (c lookedAtContext) Err() error {
	c.looked()
	return c.Context.Err()
}

// Whatever psi does for each of many things that a peer has named, it stops soon after the
// caller has gone. Each operation calls work for each thing, or looks at its context if there
// is nothing else to observe. The caller leaves at the third call.
//
// Add an operation when you add a loop over what a peer has sent.
func TestAbandonedWorkEnds(t *testing.T) {
	const many, few = 1000, 20
	uris := make([]string, many)
	for i := range uris {
		uris[i] = fmt.Sprint("notes://", i)
	}
	note := func(work func(), r *mcp.Resource) mcp.Handler {
		return mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) {
			work()
			return "", nil
		}, r)
	}
	subscribe := func() *mcp.Request {
		return mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: uris}})
	}
	visible := func(work func()) mcp.Middleware {
		return middleware.Visible(func(context.Context, mcp.Kind, string) bool {
			work()
			return true
		})
	}
	newMux := func() *mcp.Mux { return mcp.NewMux("m", "v1", quiet()) }
	answering := func(work func(), res mcp.Result) mcp.Handler { // a gateway to a server that sends res
		mux := newMux()
		mux.Use(visible(work))
		mux.Mount("m_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, nil }))
		return mux
	}
	for name, operation := range map[string]struct {
		handler func(work func()) mcp.Handler
		request *mcp.Request
		looks   bool // the work is to look at the context
	}{
		"deciding about subscriptions": {func(work func()) mcp.Handler {
			mux := newMux()
			mux.Resource("notes://{id}", note(t.FailNow, &mcp.Resource{Subscribe: func(context.Context, string) error {
				work()
				return nil
			}}))
			return mux
		}, subscribe(), false},
		"reading for subscriptions": {func(work func()) mcp.Handler {
			mux := newMux()
			mux.Resource("notes://{id}", note(work, nil))
			return mux
		}, subscribe(), false},
		"matching URIs": {func(func()) mcp.Handler {
			mux := newMux()
			mux.Resource("notes://{id}/{x}", note(t.FailNow, nil))
			return mux
		}, subscribe(), true},
		"filtering subscriptions": {func(work func()) mcp.Handler {
			mux := newMux()
			mux.Use(visible(work))
			mux.Resource("notes://{id}/{x}", note(t.FailNow, nil))
			return mux
		}, subscribe(), false},
		"filtering a list": {func(work func()) mcp.Handler {
			list := &mcp.ListResourcesResult{}
			for _, uri := range uris {
				list.Resources = append(list.Resources, &mcp.Resource{URI: uri, Name: uri})
			}
			return answering(work, list)
		}, mcptest.NewRequest(mcp.MethodListResources, nil), false},
		"filtering the contents of a resource": {func(work func()) mcp.Handler {
			res := &mcp.ReadResourceResult{}
			for _, uri := range uris {
				res.Contents = append(res.Contents, &mcp.ResourceContents{URI: uri})
			}
			return answering(work, res)
		}, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "mount:m_:x:y"}), false},
		"filtering completions": {func(work func()) mcp.Handler {
			return answering(work, &mcp.CompleteResult{Completion: mcp.Completion{Values: uris}})
		}, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: "mount:m_:x:{id}"}, Argument: mcp.CompleteArgument{Name: "id"},
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			inner, leave := context.WithCancelCause(t.Context())
			var mu sync.Mutex
			done := 0
			work := func() {
				mu.Lock()
				defer mu.Unlock()
				if done++; done == 3 {
					leave(&mcp.CancelError{})
				}
			}
			ctx := inner
			if operation.looks {
				ctx = lookedAtContext{inner, work}
			}
			res, err := core.Serve(ctx, operation.handler(work), operation.request, notifying(func(string, json.RawMessage) {}), quiet().Logger)
			if err == nil {
				t.Errorf("got %+v for a caller that has gone", res)
			}
			if done < 3 || done > few {
				t.Errorf("the work was done for %d of %d things; the caller left at the third", done, many)
			}
		})
	}
}
