// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// world is one run: a server, its clients, and the state of the model.
type world struct {
	ctx  context.Context
	seed uint64
	mux  *mcp.Mux
	// handler is the served handler: the mux, or a mutant of it.
	handler mcp.Handler
	site    *site
	clients []*client
	rate    float64 // probability of a fault per message
	crowd   *way    // used by all clients; nil if each has its own

	calling sync.WaitGroup // calls in flight

	mu          sync.Mutex
	seq         int // number of moments so far
	start       time.Time
	calm        bool      // there are no more faults
	down        time.Time // when the server was shut down; zero if it was not
	problems    []string
	trace       []string
	calls       map[string]*call // by tag
	subs        []*sub
	changes     []change
	tools       map[string]bool // registered dynamic tools
	serving     int             // number of running handlers
	connections int
	lost        int // sessions forgotten by the server
	logged      int // log messages received by clients
	stolen      int // messages repeated by another principal
	forged      int // messages forged by hostile servers
}

// change is a change at the server that took effect between two moments.
type change struct {
	key        string // "tools" or a URI
	begun, end int
	tools      []string // tools registered afterwards, if the tools changed
}

var quiet = slog.New(slog.DiscardHandler)

func newWorld(ctx context.Context, seed uint64, mutate mcp.Middleware) *world {
	w := &world{ctx: ctx, seed: seed, start: time.Now(), calls: map[string]*call{}, tools: map[string]bool{}}
	rng := w.rng("world")
	w.rate = []float64{0, 0.03, 0.1, 0.3}[rng.IntN(4)]
	if mutate != nil {
		w.rate = 0
	}
	w.mux = mcp.NewMux("model", "v1", &mcp.MuxOptions{Logger: quiet})
	w.register()
	w.handler = w.mux
	if mutate != nil {
		w.handler = mutate(w.mux)
	}
	w.site = newSite(w)
	if rng.IntN(3) > 0 {
		w.crowd = &ways[rng.IntN(len(ways))]
	}
	for i := range 1 + rng.IntN(3) {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// rng returns the random numbers for the choices of one actor. They depend only on the seed
// and the actor, not on concurrent actions of others.
func (w *world) rng(actor string) *rand.Rand {
	h := w.seed
	for _, b := range []byte(actor) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

// moment returns the number of the next moment, which orders events.
func (w *world) moment() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	return w.seq
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLockedf(format, args...)
}

func (w *world) logLockedf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%5d %9.3fs ", w.seq, time.Since(w.start).Seconds())+fmt.Sprintf(format, args...))
}

// wrongf records a deviation from the model.
func (w *world) wrongf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongLockedf(format, args...)
}

func (w *world) wrongLockedf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.problems = append(w.problems, text)
	w.logLockedf("WRONG: %s", text)
}

func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

func (w *world) isDown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.down.IsZero()
}

// tagPattern matches the tag of the call that a message belongs to.
var tagPattern = regexp.MustCompile("~[0-9]+~")

func tagOf(data []byte) string { return string(tagPattern.Find(data)) }

// callOf returns the call with a tag, or nil.
func (w *world) callOf(tag string) *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[tag]
}

// play runs all actors, waits until things have settled, and then shuts everything down.
func (w *world) play() {
	rng := w.rng("director")
	abrupt := rng.IntN(4) == 0 // the server shuts down while clients are active
	var acting sync.WaitGroup
	for _, c := range w.clients {
		acting.Go(c.act)
	}
	acting.Go(w.actAsServer)
	for i := range principals {
		acting.Go(w.newStranger(i).act)
	}
	if abrupt {
		<-time.After(time.Duration(1+rng.IntN(8000)) * time.Millisecond)
		w.shutDown()
	}
	acting.Wait()
	w.mu.Lock()
	w.calm = true
	w.logLockedf("calm")
	w.mu.Unlock()
	w.calling.Wait()
	if !w.isDown() {
		w.settle()
	}
	graceful := rng.IntN(2) == 0 && !w.isDown()
	if graceful {
		w.shutDown()
	}
	for _, c := range w.clients {
		c.leave()
	}
	w.site.leave()
	if !w.isDown() {
		<-time.After(blocked + 3*sessionIdle) // a DELETE may be lost
		w.noSessions("after everybody has left")
		w.shutDown()
	}
	w.site.close()
	<-time.After(time.Hour)
	w.noSessions("after the end")
}

// settle waits until all notifications should have arrived, and checks that they have.
func (w *world) settle() {
	for _, c := range w.clients {
		if c.isDead() {
			c.connect()
		}
		c.begin(&call{kind: "echo", strict: true})
	}
	w.calling.Wait()
	<-time.After(2 * time.Minute)
	w.heard("before the last change")
	w.toggle("dyn0")
	for _, uri := range slices.Concat(resources, []string{privateTo(principals[0]), privateTo(principals[1])}) {
		w.update(uri)
	}
	<-time.After(2 * time.Minute)
	w.heard("after the last change")
}

func (w *world) shutDown() {
	w.mu.Lock()
	w.down = time.Now()
	w.logLockedf("the server shuts down")
	w.mu.Unlock()
	w.site.shutDown()
	w.logf("the server is down")
}

// resources lists the resources to subscribe to.
var resources = []string{"res://a", "res://b"}

// actAsServer makes random changes and forgets sessions.
func (w *world) actAsServer() {
	rng := w.rng("server")
	for range 5 + rng.IntN(20) {
		<-time.After(time.Duration(1+rng.IntN(800)) * time.Millisecond)
		switch n := rng.IntN(10); {
		case w.isDown():
			return
		case n < 5:
			w.toggle(fmt.Sprintf("dyn%d", rng.IntN(3)))
		case n < 9:
			w.update(append(resources, privateTo(principals[0]), privateTo(principals[1]))[rng.IntN(len(resources)+2)])
		case w.rate > 0:
			w.forgetSessions()
		}
	}
}

// toggle adds or removes a tool.
func (w *world) toggle(name string) {
	begun := w.moment()
	w.mu.Lock()
	add := !w.tools[name]
	w.tools[name] = add
	var tools []string
	for tool, there := range w.tools {
		if there {
			tools = append(tools, tool)
		}
	}
	slices.Sort(tools)
	w.changes = append(w.changes, change{key: toolsKey, begun: begun, end: math.MaxInt, tools: tools})
	at := len(w.changes) - 1
	w.logLockedf("change: tools %v", tools)
	w.mu.Unlock()
	if add {
		w.mux.Tool(name, w.tool("dyn"))
	} else {
		w.mux.RemoveTool(name)
	}
	end := w.moment()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[at].end = end
}

const toolsKey = "tools"

func (w *world) update(uri string) {
	begun := w.moment()
	w.logf("change: %s", uri)
	w.mux.ResourceUpdated(uri)
	end := w.moment()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, change{key: uri, begun: begun, end: end})
}

// forgetSessions ends all sessions, as a server does that restarts or has too many.
func (w *world) forgetSessions() {
	for _, c := range w.clients {
		if c.way.sessions {
			c.disturb("the server forgets its session")
		}
	}
	n := w.site.forgetSessions()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost += n
}
