// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

const (
	// callTimeout exceeds the duration of any undisturbed call.
	callTimeout = 5 * time.Minute
	// askTimeout is how long the server waits for an answer to a question.
	askTimeout = time.Minute
)

// client is a client in the world. All its actions run on one goroutine.
type client struct {
	w         *world
	name      string
	way       way
	principal *mcp.Principal
	client    *mcp.Client
	transport transport.Transport
	rng       *rand.Rand
	next      int // number of the next tag

	// Guarded by world.mu.
	conn      *mcp.Conn
	dead      bool        // the connection was cut or closed
	disturbed []time.Time // times of events that may fail any call
	irritated []time.Time // times of events that may fail subscriptions and cancellations
	own       []*sub
	gone      map[*mcp.Conn]bool // closed long enough ago that nothing may arrive
}

func newClient(w *world, i int) *client {
	c := &client{w: w, name: fmt.Sprintf("c%d", i), dead: true, gone: map[*mcp.Conn]bool{}}
	c.rng = w.rng(c.name)
	c.principal = principals[i%len(principals)]
	c.way = ways[c.rng.IntN(len(ways))]
	if w.crowd != nil {
		c.way = *w.crowd
	}
	versions := append([]string{"", mcp.LatestVersion, mcp.LatestVersion}, mcp.LegacyVersions()...)
	version := versions[c.rng.IntN(len(versions))]
	if c.way.legacy {
		version = mcp.LegacyVersions()[c.rng.IntN(len(mcp.LegacyVersions()))]
	}
	c.client = mcp.NewClient(c.name, "v1", &mcp.ClientOptions{
		Version: version, CallTimeout: callTimeout, Logger: quiet, Elicit: c.elicit, LogLevel: mcp.LoggingLevelInfo, Log: c.logged,
		Notification: func(_ context.Context, conn *mcp.Conn, note *mcp.Request) {
			if note.Method == mcp.NotificationToolsListChanged || note.Method == mcp.NotificationResourceUpdated {
				c.told(conn)
			}
		},
	})
	f := &faults{client: c, seen: map[string]int{}}
	c.transport = mcptest.Faulty(c.way.to(w.site, f), f.onWire)
	w.logf("%s is %s, goes by %s and speaks %q", c.name, c.principal.Subject, c.way.name, version)
	return c
}

// disturb records that any call in flight may fail.
func (c *client) disturb(why string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.disturbed = append(c.disturbed, time.Now())
	c.irritated = append(c.irritated, time.Now())
	c.w.logLockedf("%s is disturbed: %s", c.name, why)
}

// irritate records the loss of a message that does not belong to a call.
func (c *client) irritate(why string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.irritated = append(c.irritated, time.Now())
	c.w.logLockedf("%s is irritated: %s", c.name, why)
}

// dies records that the connection has ended.
func (c *client) dies(why string) {
	c.disturb(why)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.dead = true
}

func (c *client) isDead() bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.dead
}

// connect replaces the connection. While there are faults, it may take several attempts.
func (c *client) connect() {
	c.leave()
	for c.w.isCalm() || !c.w.isDown() {
		c.w.mu.Lock()
		before, calm := len(c.irritated), c.w.calm
		c.dead = false
		c.w.mu.Unlock()
		ctx, cancel := context.WithTimeout(c.w.ctx, time.Minute)
		conn, err := c.client.Connect(ctx, c.transport)
		cancel()
		c.w.mu.Lock()
		excused := len(c.irritated) > before || !c.w.down.IsZero()
		c.w.mu.Unlock()
		if err == nil {
			c.connected(conn)
			return
		}
		c.w.logf("%s did not connect: %v", c.name, err)
		if calm || !excused {
			c.w.wrongf("%s could not connect by %s: %v", c.name, c.way.name, err)
			return
		}
		<-time.After(time.Second)
	}
}

func (c *client) connected(conn *mcp.Conn) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	c.conn = conn
	w.connections++
	w.logLockedf("%s is connected and speaks %s", c.name, conn.Version())
}

// leave closes the connection and checks that nothing arrives afterwards.
func (c *client) leave() {
	w := c.w
	w.mu.Lock()
	conn, own := c.conn, c.own
	c.conn, c.own = nil, nil
	w.mu.Unlock()
	if conn == nil {
		return
	}
	c.dies("it leaves")
	for _, s := range own {
		s.closing()
	}
	begun := time.Now()
	if err := conn.Close(); err != nil {
		w.wrongf("%s: Close returned %v", c.name, err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		w.wrongf("%s: Close took %v", c.name, took)
	}
	<-time.After(10 * time.Second) // for notifications on other goroutines
	for _, s := range own {
		s.mustBeDone("its connection was closed")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.gone[conn] = true
}

// told handles a change reported by a connection.
func (c *client) told(conn *mcp.Conn) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.gone[conn] {
		c.w.wrongLockedf("%s is told of a change by a connection that was closed", c.name)
	}
}

// act performs random client operations until there were enough or the server is down.
func (c *client) act() {
	c.connect()
	for range 8 + c.rng.IntN(25) {
		<-time.After(time.Duration(1+c.rng.IntN(500)) * time.Millisecond)
		if c.w.isDown() {
			return
		}
		if c.isDead() {
			c.connect()
		}
		c.w.mu.Lock()
		conn := c.conn
		c.w.mu.Unlock()
		if conn == nil {
			return
		}
		switch n := c.rng.IntN(100); {
		case n < 55:
			c.begin(c.someCall())
		case n < 65:
			c.begin(&call{kind: "list"})
		case n < 80:
			c.subscribe(conn)
		case n < 88:
			c.unsubscribe()
		case n < 92:
			c.noise(conn)
		case n < 95:
			c.w.logf("%s goes and comes again", c.name)
			c.connect()
		}
	}
}

// noise sends notifications that servers must ignore.
func (c *client) noise(conn *mcp.Conn) {
	ctx, cancel := context.WithTimeout(c.w.ctx, time.Minute)
	defer cancel()
	_ = conn.Notify(ctx, mcp.NotificationProgress, &mcp.ProgressParams{ProgressToken: mcp.StringID("nobody's"), Progress: 1})
	_ = conn.Notify(ctx, mcp.NotificationCancelled, &mcp.CancelledParams{RequestID: mcp.StringID("nobody's")})
}

// someCall returns a random call.
func (c *client) someCall() *call {
	k := &call{kind: kinds[c.rng.IntN(len(kinds))], steps: 1 + c.rng.IntN(6), pause: c.rng.IntN(300)}
	if c.way.gateway && c.rng.IntN(5) == 0 {
		k.kind = "hostile"
	}
	k.name = k.kind
	if k.kind == "echo" && c.rng.IntN(3) == 0 {
		k.kind, k.name = "dyn", fmt.Sprintf("dyn%d", c.rng.IntN(3))
	}
	if k.kind == "block" || k.kind == "hostile" || c.rng.IntN(8) == 0 {
		k.cancelAfter = time.Duration(1+c.rng.IntN(1500)) * time.Millisecond
	}
	if k.kind == "ask" {
		k.action = []string{mcp.ActionAccept, mcp.ActionAccept, mcp.ActionAccept, mcp.ActionDecline, mcp.ActionCancel}[c.rng.IntN(5)]
		k.thinking = time.Duration(1+c.rng.IntN(2000)) * time.Millisecond
	}
	return k
}

// elicit answers as the user.
func (c *client) elicit(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if p.Message == forged {
		return c.askedByHostile()
	}
	k := c.w.callOf(tagOf([]byte(p.Message)))
	if k == nil || k.client != c && (k.kind != "hostile" || !k.client.principal.Is(c.principal)) {
		c.w.wrongf("%s was asked %q, which belongs to %s", c.name, p.Message, k)
		return nil, mcp.Errorf(mcp.CodeInternalError, "not my question")
	}
	c.w.mu.Lock()
	k.asked[p.Message]++
	c.w.logLockedf("%s: asked %q", k, p.Message)
	c.w.mu.Unlock()
	if err := async.Sleep(ctx, k.thinking); err != nil {
		return nil, err
	}
	if k.action != mcp.ActionAccept && strings.HasSuffix(p.Message, "b") {
		return &mcp.ElicitResult{ResultBase: mcp.ResultBase{Meta: k.meta()}, Action: k.action}, nil
	}
	return mcptest.Accept(answer{reply(p.Message)}), nil
}

// call is a call and its outcome.
type call struct {
	client       *client
	kind, name   string
	tag          string
	steps, pause int
	action       string        // of the user
	thinking     time.Duration // of the user
	cancelAfter  time.Duration // 0 for never
	strict       bool          // without any faults: it must succeed

	// Guarded by world.mu.
	begun, returned     int // moments, see world.moment
	begunAt, returnedAt time.Time
	dead                bool // the connection had ended before
	faults              []string
	cancelled           bool
	cancelledAt         time.Time
	text                string
	list                []string
	err                 error
	progress            []float64
	asked               map[string]int // number of times each question was asked
	runs, once          int            // number of times the handler and its Once function ran
	serving             int            // number of running handlers
	ended               time.Time      // when the last handler ended
}

func (k *call) String() string {
	if k == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s %s %s", k.client.name, k.name, k.tag)
}

// begin starts a call in the background.
func (c *client) begin(k *call) {
	w := c.w
	if k.name == "" {
		k.name = k.kind
	}
	c.next++
	k.client, k.asked = c, map[string]int{}
	w.mu.Lock()
	k.tag = fmt.Sprintf("~%s%d~", c.name[1:], c.next)
	conn := c.conn
	k.dead = c.dead
	if conn == nil {
		w.mu.Unlock()
		return
	}
	w.calls[k.tag] = k
	w.seq++
	k.begun, k.begunAt = w.seq, time.Now()
	w.logLockedf("%s begins", k)
	w.mu.Unlock()
	w.calling.Go(func() { k.make(conn) })
}

func (k *call) make(conn *mcp.Conn) {
	w := k.client.w
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if k.cancelAfter > 0 {
		defer time.AfterFunc(k.cancelAfter, func() {
			w.mu.Lock()
			k.cancelled, k.cancelledAt = true, time.Now()
			w.logLockedf("%s is cancelled", k)
			w.mu.Unlock()
			cancel()
		}).Stop()
	}
	ctx = mcp.WithProgress(ctx, k.progressed)
	text, list, err := k.send(ctx, conn)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	k.returned, k.returnedAt = w.seq, time.Now()
	k.text, k.list, k.err = text, list, err
	w.logLockedf("%s returns %q, %v, %v", k, text, list, err)
}

// meta returns metadata that identifies the call.
func (k *call) meta() mcp.Meta {
	return mcp.Meta{"example.com/tag": json.RawMessage(`"` + k.tag + `"`)}
}

func (k *call) send(ctx context.Context, conn *mcp.Conn) (text string, list []string, err error) {
	if k.kind == "list" {
		res, err := conn.ListTools(ctx, &mcp.ListParams{Meta: k.meta()})
		if err != nil {
			return "", nil, err
		}
		k.checkNames(res.Tools)
		for _, t := range res.Tools {
			name := strings.TrimPrefix(t.Name, mounted)
			if strings.HasPrefix(name, "dyn") {
				list = append(list, name)
			}
		}
		slices.Sort(list)
		return "", list, nil
	}
	args, err := json.Marshal(arguments{k.tag, k.steps, k.pause})
	if err != nil {
		return "", nil, err
	}
	res, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: k.tool(), Arguments: args})
	if err != nil {
		return "", nil, err
	}
	for _, block := range res.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if res.IsError {
		return "", nil, &mcp.ToolError{Tool: k.name, Result: res}
	}
	return text, nil, nil
}

func (k *call) progressed(p *mcp.ProgressParams) {
	w := k.client.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.returned != 0 {
		w.wrongLockedf("%s: progress %v after it has returned", k, p.Progress)
	}
	if p.Message == forged && k.reachesHostile() {
		return // the hostile server sends arbitrary progress
	}
	if p.Message != "" && p.Message != k.tag {
		w.wrongLockedf("%s: it got the progress of %q", k, p.Message)
	}
	if n := len(k.progress); n > 0 && k.progress[n-1] >= p.Progress {
		w.wrongLockedf("%s: progress %v after %v", k, p.Progress, k.progress)
	}
	k.progress = append(k.progress, p.Progress)
}
