// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
)

// stuck is a stream whose Read cannot be made to return, as that of a terminal.
type stuck struct{ release chan struct{} }

func (s stuck) Read(context.Context) ([]byte, error) { <-s.release; return nil, io.EOF }
func (stuck) Write(context.Context, []byte) error    { return nil }
func (stuck) Close() error                           { return nil }

// Calls end when their wire is closed, even if its stream does not.
func TestCloseOfAStreamThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		defer close(s.release)
		w := mcp.NewStreamWire(s, func(mcp.Message, mcp.ID) {})
		called := make(chan error, 1)
		go func() {
			_, err := w.Call(t.Context(), &mcp.Envelope{ID: mcp.IntID(1), Method: "vendor/m"})
			called <- err
		}()
		synctest.Wait()
		_ = w.Close()
		synctest.Wait()
		select {
		case err := <-called:
			if !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("the call ended with %v", err)
			}
		default:
			t.Error("the call goes on")
		}
	})
}
