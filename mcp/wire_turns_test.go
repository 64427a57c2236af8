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

// byTurns is a pipe that whoever waits for an answer reads.
type byTurns struct{ mcp.Stream }

func (byTurns) Interruptible() bool { return true }

// turnsTest is a wire that is read by turns, its peer, and what it receives.
type turnsTest struct {
	t        *testing.T
	wire     mcp.Wire
	peer     mcp.Stream
	received chan string
}

// inTurns runs a test in a bubble, after some calls: nobody has the turn.
func inTurns(t *testing.T, test func(tt *turnsTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		here, there := mcp.Pipe()
		tt := &turnsTest{t: t, peer: there, received: make(chan string, 100)}
		tt.wire = mcp.NewStreamWire(byTurns{here}, func(m mcp.Message, _ mcp.ID) { tt.received <- m.Request.Method })
		tt.callOften()
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

// callOften makes calls that are answered, so often that the next one is to lead.
func (tt *turnsTest) callOften() {
	tt.t.Helper()
	for range 9 {
		ended := tt.call(tt.t.Context(), 0)
		tt.answer(0)
		tt.wants(ended, nil)
	}
}

// call makes a call, which waits when it returns.
func (tt *turnsTest) call(ctx context.Context, id int64) <-chan error {
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

func (tt *turnsTest) say(message string) {
	tt.t.Helper()
	if err := tt.peer.Write(context.Background(), []byte(message)); err != nil {
		tt.t.Fatal(err)
	}
}

func (tt *turnsTest) answer(id int64) {
	tt.t.Helper()
	tt.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
}

// wants checks how a call has ended, without any time going by.
func (tt *turnsTest) wants(ended <-chan error, want error) {
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

// hears checks that notifications come, and how soon.
func (tt *turnsTest) hears(within time.Duration, methods ...string) {
	tt.t.Helper()
	late := time.After(within + 1)
	for _, want := range methods {
		select {
		case got := <-tt.received:
			if got != want {
				tt.t.Errorf("received %s, not %s", got, want)
			}
		case <-late:
			tt.t.Errorf("%s does not come", want)
		}
	}
}

func aNote(method string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method) }

func TestTurnsGiveUp(t *testing.T) {
	inTurns(t, func(tt *turnsTest) {
		cause := errors.New("enough")
		ctx, giveUp := context.WithCancelCause(tt.t.Context())
		leads := tt.call(ctx, 1)
		second, third := tt.call(tt.t.Context(), 2), tt.call(tt.t.Context(), 3)
		giveUp(cause)
		tt.wants(leads, cause)
		tt.answer(1) // which is late
		tt.answer(3)
		tt.wants(third, nil)
		tt.answer(2)
		tt.wants(second, nil)
	})
}

func TestTurnsReceive(t *testing.T) {
	const most = 20 * time.Millisecond // until it is known that no call reads
	inTurns(t, func(tt *turnsTest) {
		tt.say(aNote("a"))
		tt.hears(most, "a")
		tt.say(aNote("b")) // a goroutine in the background reads now
		tt.hears(0, "b")
		first := tt.call(tt.t.Context(), 1)
		tt.say(`[` + aNote("c") + `,{"jsonrpc":"2.0","id":1,"result":{}},` + aNote("d") + `]`)
		tt.wants(first, nil)
		second := tt.call(tt.t.Context(), 2) // which leads
		tt.say(aNote("e"))
		tt.hears(0, "c", "d", "e")
		tt.answer(2)
		tt.say(aNote("f"))
		tt.wants(second, nil)
		tt.hears(most, "f")
	})
}

// A subscription, which lasts, does not keep calls from reading, but is heard.
func TestTurnsListen(t *testing.T) {
	inTurns(t, func(tt *turnsTest) {
		ended := make(chan error, 1)
		go func() {
			_, err := tt.wire.Call(tt.t.Context(), &mcp.Envelope{ID: mcp.StringID("s"), Method: mcp.MethodListen})
			ended <- err
		}()
		tt.say(aNote("a"))
		tt.hears(20*time.Millisecond, "a")
		tt.say(`{"jsonrpc":"2.0","id":"s","result":{}}`)
		tt.wants(ended, nil)
	})
}

func TestTurnsClose(t *testing.T) {
	t.Run("nobody reads", func(t *testing.T) { inTurns(t, func(*turnsTest) {}) })
	t.Run("a call reads", func(t *testing.T) {
		inTurns(t, func(tt *turnsTest) {
			first, second := tt.call(tt.t.Context(), 1), tt.call(tt.t.Context(), 2)
			_ = tt.wire.Close()
			tt.wants(first, mcp.ErrClosed)
			tt.wants(second, mcp.ErrClosed)
		})
	})
	t.Run("from the Receiver", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			here, there := mcp.Pipe()
			wires := make(chan mcp.Wire, 1)
			tt := &turnsTest{t: t, peer: there}
			tt.wire = mcp.NewStreamWire(byTurns{here}, func(mcp.Message, mcp.ID) { _ = (<-wires).Close() })
			wires <- tt.wire
			tt.callOften()
			second := tt.call(t.Context(), 2)
			tt.say(aNote("a"))
			tt.wants(second, mcp.ErrClosed)
			<-tt.wire.Done()
		})
	})
}

func TestTurnsEnd(t *testing.T) {
	for _, calls := range []int64{0, 1, 3} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			inTurns(t, func(tt *turnsTest) {
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

// A Receiver that panics ends the call that reads, if somebody recovers, and no other.
func TestTurnsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := mcp.Pipe()
		tt := &turnsTest{t: t, peer: there}
		tt.wire = mcp.NewStreamWire(byTurns{here}, func(mcp.Message, mcp.ID) { panic("of the Receiver") })
		defer tt.wire.Close()
		tt.callOften()
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = tt.wire.Call(t.Context(), &mcp.Envelope{ID: mcp.IntID(2), Method: "vendor/m"})
		}()
		synctest.Wait()
		third := tt.call(t.Context(), 3)
		tt.say(aNote("a"))
		if got := <-panicked; got != "of the Receiver" {
			t.Errorf("panicked with %v", got)
		}
		tt.answer(3)
		tt.wants(third, nil)
	})
}

// Whoever gives up when, all get their own answers.
func TestTurnsRandomly(t *testing.T) {
	for _, clients := range []int64{1, 2, 8} {
		t.Run(fmt.Sprint(clients), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { callRandomly(t, clients) })
		})
	}
}

func callRandomly(t *testing.T, clients int64) {
	here, there := mcp.Pipe()
	wire := mcp.NewStreamWire(byTurns{here}, func(mcp.Message, mcp.ID) {})
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
