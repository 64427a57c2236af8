// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/internal/seam"

	"github.com/go-psi/psi/mcp"
)

// core is the internal API of package mcp used by transports.
var core = mcp.Internal(seam.Key{})

// mutants are faulty servers. All of them misbehave only rarely.
var mutants = map[string]mcp.Middleware{
	"does things twice": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodCallTool, next, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			_, _ = next.ServeMCP(ctx, req)
			return next.ServeMCP(ctx, req)
		})
	},
	"gives the answer to another call": func(next mcp.Handler) mcp.Handler {
		var last atomic.Pointer[mcp.Result]
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if r, ok := res.(*mcp.CallToolResult); ok && !r.IsError {
				if before := last.Swap(&res); before != nil && req.Name() == "work" {
					return *before, nil
				}
			}
			return res, err
		})
	},
	"does not answer": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodCallTool, next, func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	},
	"fails for no reason": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodCallTool, next, func(context.Context, *mcp.Request) (mcp.Result, error) {
			return nil, mcp.Errorf(mcp.CodeInternalError, "just so")
		})
	},
	"loses the progress": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodCallTool, next, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Name() != "work" {
				return next.ServeMCP(ctx, req)
			}
			return filtered(ctx, req, next, func(string) bool { return false })
		})
	},
	"loses a change": func(next mcp.Handler) mcp.Handler {
		var n atomic.Int64
		return listening(next, func(method string) bool {
			return method != mcp.NotificationToolsListChanged || n.Add(1)%3 != 0
		})
	},
	"loses updates": func(next mcp.Handler) mcp.Handler {
		return listening(next, func(method string) bool { return method != mcp.NotificationResourceUpdated })
	},
	"takes a caller for another": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodCallTool, next, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return taken(ctx, req, otherThan(req.Principal), next)
		})
	},
	"lets everybody subscribe to everything": func(next mcp.Handler) mcp.Handler {
		return sometimes(mcp.MethodListen, next, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return taken(ctx, req, nil, next)
		})
	},
	"lists what was there before": func(next mcp.Handler) mcp.Handler {
		var last atomic.Pointer[mcp.Result]
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if req.Method == mcp.MethodListTools && err == nil {
				if before := last.Swap(&res); before != nil {
					return *before, nil
				}
			}
			return res, err
		})
	},
}

// sometimes serves every fifth request of a method with a different handler.
func sometimes(method string, next mcp.Handler, instead mcp.HandlerFunc) mcp.Handler {
	var n atomic.Int64
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == method && n.Add(1)%5 == 0 {
			return instead(ctx, req)
		}
		return next.ServeMCP(ctx, req)
	})
}

// taken serves a request as principal p.
func taken(ctx context.Context, req *mcp.Request, p *mcp.Principal, next mcp.Handler) (mcp.Result, error) {
	other := req.Clone()
	other.Principal = p
	return next.ServeMCP(ctx, other)
}

// listening filters the notifications of subscriptions.
func listening(next mcp.Handler, pass func(method string) bool) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return next.ServeMCP(ctx, req)
		}
		return filtered(ctx, req, next, pass)
	})
}

// filtered serves a request and passes on only some of its notifications.
func filtered(ctx context.Context, req *mcp.Request, next mcp.Handler, pass func(method string) bool) (mcp.Result, error) {
	inner, err := mcp.NewRequest(req.Method, req.Params())
	if err != nil {
		return nil, err
	}
	inner.ID, inner.Principal = req.ID, req.Principal
	return core.Serve(ctx, next, inner, filter{req, pass}, quiet)
}

type filter struct {
	to   *mcp.Request
	pass func(method string) bool
}

// Notify implements mcp.Notifier.
func (f filter) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if !f.pass(method) {
		return nil
	}
	return f.to.Notify(ctx, method, params)
}

// The model detects faulty servers in few runs, and reports nothing for a correct server.
func TestMutants(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		same := func(next mcp.Handler) mcp.Handler { return listening(next, func(string) bool { return true }) }
		for seed := uint64(1); seed <= 20; seed++ {
			if w := run(t, seed, same); len(w.problems) > 0 {
				t.Errorf("run %d: %s", seed, w.problems)
			}
		}
	})
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				if w := run(t, seed, mutate); len(w.problems) > 0 {
					t.Logf("run %d: %s", seed, w.problems[0])
					return
				}
			}
			t.Error("nobody saw it in 20 runs")
		})
	}
}
