// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package queue

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Serve serves the messages of a subject until ctx is done. Then it waits for the handlers.
func Serve(ctx context.Context, b *Broker, subject string, h mcp.Handler) {
	w := &worker{broker: b, handler: h, running: map[string]context.CancelCauseFunc{}}
	stopCalls := b.Subscribe(subject, func(d Delivery) { w.accept(ctx, d) })
	stopCancellations := b.Subscribe(subject+".cancel", func(d Delivery) { w.cancel(d.Reply) })
	<-ctx.Done()
	stopCalls()
	stopCancellations()
	w.handlers.Wait()
}

// A worker serves messages.
type worker struct {
	broker   *Broker
	handler  mcp.Handler
	handlers sync.WaitGroup

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // by the inbox of the call
}

// accept serves a message in a goroutine of its own.
func (w *worker) accept(ctx context.Context, d Delivery) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	w.running[d.Reply] = cancel
	w.mu.Unlock()
	w.handlers.Go(func() {
		defer func() {
			w.mu.Lock()
			delete(w.running, d.Reply)
			w.mu.Unlock()
			cancel(nil)
		}()
		w.serve(ctx, d)
	})
}

func (w *worker) serve(ctx context.Context, d Delivery) {
	send := func(raw []byte) { w.broker.Publish(d.Reply, Delivery{Data: raw}) }
	m, err := transport.ParseMessage(d.Data)
	if err != nil {
		send(mcp.AppendResponse(nil, nil, nil, err))
		return
	}
	req, err := mcp.ParseRequest(&m)
	var res mcp.Result
	if err == nil {
		res, err = mcp.ServeRequest(ctx, w.handler, req, func(_ context.Context, method string, params json.RawMessage) error {
			send(transport.AppendNotification(nil, method, params))
			return nil
		})
	}
	if !m.IsNotification() {
		send(mcp.AppendResponse(nil, req, res, err))
	}
}

// cancel cancels the call whose answer goes to inbox, if this worker serves it.
func (w *worker) cancel(inbox string) {
	w.mu.Lock()
	cancel := w.running[inbox]
	w.mu.Unlock()
	if cancel != nil {
		cancel(&mcp.CancelError{Reason: "the client no longer waits"})
	}
}
