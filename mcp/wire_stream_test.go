// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// streamWireTest is a wire on a stream, its peer, and what the wire receives.
type streamWireTest struct {
	t        *testing.T
	wire     mcp.Wire
	peer     mcp.Stream
	received chan string
}

// testStreamWire runs a test in a bubble.
func testStreamWire(t *testing.T, test func(tt *streamWireTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		here, there := mcp.Pipe()
		tt := &streamWireTest{t: t, peer: there, received: make(chan string, 100)}
		tt.wire = mcp.NewStreamWire(here, func(m mcp.Message, _ mcp.ID) { tt.received <- m.Request.Method })
		test(tt)
		_ = tt.wire.Close()
		synctest.Wait()
		select {
		case <-tt.wire.Done():
		default:
			t.Error("the wire is not done")
		}
	})
}

// call makes a call, which waits when it returns.
func (tt *streamWireTest) call(ctx context.Context, id int64) <-chan error {
	ended := make(chan error, 1)
	go func() {
		r, err := tt.wire.Call(ctx, &mcp.Envelope{ID: mcp.IntID(id), Method: "vendor/m"})
		if err == nil && r.ID != mcp.IntID(id) {
			err = fmt.Errorf("got the answer to %v", r.ID)
		}
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func (tt *streamWireTest) say(message string) {
	tt.t.Helper()
	if err := tt.peer.Write(context.Background(), []byte(message)); err != nil {
		tt.t.Fatal(err)
	}
}

func (tt *streamWireTest) answer(id int64) {
	tt.t.Helper()
	tt.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
}

// wants checks how a call has ended, without any time going by.
func (tt *streamWireTest) wants(ended <-chan error, want error) {
	tt.t.Helper()
	synctest.Wait()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			tt.t.Errorf("the call ended with %v, not %v", err, want)
		}
	default:
		tt.t.Error("the call goes on")
	}
}

// hears checks that notifications have come.
func (tt *streamWireTest) hears(methods ...string) {
	tt.t.Helper()
	synctest.Wait()
	for _, want := range methods {
		select {
		case got := <-tt.received:
			if got != want {
				tt.t.Errorf("received %s, not %s", got, want)
			}
		default:
			tt.t.Errorf("%s does not come", want)
		}
	}
}

func aNote(method string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method) }

func TestStreamWireGiveUp(t *testing.T) {
	testStreamWire(t, func(tt *streamWireTest) {
		cause := errors.New("enough")
		ctx, giveUp := context.WithCancelCause(tt.t.Context())
		first := tt.call(ctx, 1)
		second, third := tt.call(tt.t.Context(), 2), tt.call(tt.t.Context(), 3)
		giveUp(cause)
		tt.wants(first, cause)
		tt.answer(1) // which is late
		tt.answer(3)
		tt.wants(third, nil)
		tt.answer(2)
		tt.wants(second, nil)
	})
}

// Notifications come in order, whether or not calls wait.
func TestStreamWireReceive(t *testing.T) {
	testStreamWire(t, func(tt *streamWireTest) {
		tt.say(aNote("a"))
		tt.hears("a")
		first := tt.call(tt.t.Context(), 1)
		tt.say(`[` + aNote("b") + `,{"jsonrpc":"2.0","id":1,"result":{}},` + aNote("c") + `]`)
		tt.wants(first, nil)
		second := tt.call(tt.t.Context(), 2)
		tt.say(aNote("d"))
		tt.hears("b", "c", "d")
		tt.answer(2)
		tt.say(aNote("e"))
		tt.wants(second, nil)
		tt.hears("e")
	})
}

func TestStreamWireClose(t *testing.T) {
	t.Run("no calls", func(t *testing.T) { testStreamWire(t, func(*streamWireTest) {}) })
	t.Run("calls wait", func(t *testing.T) {
		testStreamWire(t, func(tt *streamWireTest) {
			first, second := tt.call(tt.t.Context(), 1), tt.call(tt.t.Context(), 2)
			_ = tt.wire.Close()
			tt.wants(first, mcp.ErrClosed)
			tt.wants(second, mcp.ErrClosed)
		})
	})
	t.Run("in the Receiver", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			here, there := mcp.Pipe()
			wires := make(chan mcp.Wire, 1)
			tt := &streamWireTest{t: t, peer: there}
			tt.wire = mcp.NewStreamWire(here, func(mcp.Message, mcp.ID) { _ = (<-wires).Close() })
			wires <- tt.wire
			second := tt.call(t.Context(), 2)
			tt.say(aNote("a"))
			tt.wants(second, mcp.ErrClosed)
			<-tt.wire.Done()
		})
	})
}

func TestStreamWireEnd(t *testing.T) {
	for _, calls := range []int64{0, 1, 3} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			testStreamWire(t, func(tt *streamWireTest) {
				var ended []<-chan error
				for i := range calls {
					ended = append(ended, tt.call(tt.t.Context(), i))
				}
				_ = tt.peer.Close()
				for _, e := range ended {
					tt.wants(e, io.EOF)
				}
				<-tt.wire.Done()
				if err := tt.wire.Err(); !errors.Is(err, io.EOF) {
					tt.t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// Calls get their own answers although some of them give up at any time.
func TestStreamWireRandomly(t *testing.T) {
	for _, clients := range []int64{1, 2, 8} {
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { callRandomly(t, clients) })
		})
	}
}

func callRandomly(t *testing.T, clients int64) {
	here, there := mcp.Pipe()
	wire := mcp.NewStreamWire(here, func(mcp.Message, mcp.ID) {})
	go answerAll(there)
	var calls sync.WaitGroup
	for c := range clients {
		calls.Go(func() {
			for i := range int64(100) {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
				id := mcp.IntID(1000*c + i)
				r, err := wire.Call(ctx, &mcp.Envelope{ID: id, Method: "vendor/m", Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"vendor/m"}`, id)})
				if err == nil && r.ID != id || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("call %v got %v, %v", id, r, err)
				}
				cancel()
			}
		})
	}
	calls.Wait()
	_ = wire.Close()
	<-wire.Done()
}

// answerAll answers requests, each after a time of its own.
func answerAll(stream mcp.Stream) {
	for {
		data, err := stream.Read(context.Background())
		if err != nil {
			return
		}
		m, err := mcp.ParseMessage(data)
		if err != nil || m.Request == nil || m.Request.IsNotification() {
			continue
		}
		time.AfterFunc(rand.N(6*time.Millisecond), func() {
			_ = stream.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.Request.ID))
		})
	}
}
