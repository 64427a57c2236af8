// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A client declares what it has functions for, and what it sets, and nothing else.
func TestDeclaredCapabilities(t *testing.T) {
	elicit := func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }
	for want, opts := range map[string]*mcp.ClientOptions{
		`{}`:                                      {},
		`{"elicitation":{"form":{}}}`:             {Elicit: elicit},
		`{"elicitation":{"url":{}}}`:              {ElicitURL: elicit},
		`{"elicitation":{"form":{},"url":{}}}`:    {Elicit: elicit, ElicitURL: elicit},
		`{"sampling":{}}`:                         {Sample: sample},
		`{"sampling":{"tools":{}}}`:               {Sample: sample, SampleTools: true},
		`{"sampling":{"context":{}}}`:             {Sample: sample, Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Context: &struct{}{}}}},
		`{"roots":{}}`:                            {Roots: []mcp.Root{}},
		`{"experimental":{"a":{}},"sampling":{}}`: {Sample: sample, Capabilities: &mcp.ClientCapabilities{Experimental: map[string]json.RawMessage{"a": json.RawMessage(`{}`)}}},
	} {
		for _, version := range bothEras {
			o := *opts
			o.Version = version
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("caps", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				text, err := json.Marshal(req.ClientCapabilities())
				return mcp.TextResult(string(text)), err
			}))
			got := mustCall(t, connect(t, mux, &o), "caps", "")
			got = strings.NewReplacer(`{"listChanged":true}`, `{}`, `,"Extra":null`, "", `"Extra":null`, "").Replace(got) // which package json does not leave out
			if got != want {
				t.Errorf("%s: got %s, want %s", version, got, want)
			}
		}
	}
}

// A server may have 1024 questions open. It gets refusals for 1024 more while it does not
// read them, and those beyond are dropped.
func TestQuestionBounds(t *testing.T) {
	for asked, want := range map[int][2]int{1024: {1024, 0}, 1025: {1024, 1}, 2048: {1024, 1024}, 2100: {1024, 1024}} {
		synctest.Test(t, func(t *testing.T) {
			var all []string
			for i := range asked {
				all = append(all, fmt.Sprintf(aQuestion, i))
			}
			near, far := newScripted(), make(chan string)
			opened := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
			began := make(chan struct{}, asked)
			stream := &unreadStream{scripted: near, unread: far}
			go func() {
				m, _ := transport.ParseMessage([]byte(<-far))
				near.in <- []byte(resultFor(m.ID.String(), opened))
				<-far // notifications/initialized
				near.in <- []byte("[" + strings.Join(all, ",") + "]")
			}()
			c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return stream, nil }), &mcp.ClientOptions{
				Version: "2025-11-25", Logger: quiet().Logger,
				Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					began <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				},
			})
			synctest.Wait()
			open := len(began)
			refused := 0
			for synctest.Wait(); ; synctest.Wait() {
				select {
				case answer := <-far:
					if strings.Contains(answer, `"error"`) {
						refused++
					}
					continue
				default:
				}
				break
			}
			if open != want[0] || refused != want[1] {
				t.Errorf("of %d questions, %d are open and %d were refused, want %v", asked, open, refused, want)
			}
			go func() {
				for range far { // so that the client can close
				}
			}()
			_ = c.Close()
			synctest.Wait()
			close(far)
		})
	}
}

// unreadStream is a stream whose peer reads one message at a time.
type unreadStream struct {
	*scripted
	unread chan string
}

func (s *unreadStream) Write(ctx context.Context, message []byte) error {
	select {
	case s.unread <- string(message):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closed:
		return mcp.ErrClosed
	}
}
