// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// The end of a connection withdraws the questions of its calls, which fail.
func TestEndWhileAQuestionIsOpen(t *testing.T) {
	for _, version := range bothEras {
		for _, how := range []string{"closed", "broken"} {
			t.Run(version+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &restless{handler: welcoming()}
					asked, withdrawn := make(chan struct{}, 1), make(chan error, 1)
					c := connectTo(t, server.transport(), &mcp.ClientOptions{
						Version: version, Logger: quiet().Logger,
						Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
							asked <- struct{}{}
							select {
							case <-ctx.Done():
								withdrawn <- context.Cause(ctx)
								return nil, context.Cause(ctx)
							case <-time.After(time.Hour):
								withdrawn <- nil
								return nil, errors.New("the user does not answer")
							}
						},
					})
					failed := make(chan error, 1)
					go func() {
						_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"})
						failed <- err
					}()
					<-asked
					start := time.Now()
					if how == "closed" {
						_ = c.Close()
					} else {
						server.crash()
					}
					if err := <-failed; err == nil || how == "closed" && !errors.Is(err, mcp.ErrClosed) {
						t.Errorf("the call returned %v", err)
					}
					if cause := <-withdrawn; cause == nil || time.Since(start) > time.Minute {
						t.Errorf("after %v, the question ended with %v", time.Since(start), cause)
					}
					_ = c.Close()
					server.running.Wait()
				})
			})
		}
	}
}
