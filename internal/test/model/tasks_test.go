// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// TestTasks performs random task operations on replicas that are killed and replaced, and
// compares what clients see with a model: the answers of each task, whether it was
// cancelled, and when it expires. To repeat a failed run:
//
//	go test ./internal/test/model -run TestTasks -model.seed 17
func TestTasks(t *testing.T) {
	first, runs := max(*seedFlag, 1), 60
	switch {
	case *runsFlag > 0:
		runs = *runsFlag
	case *seedFlag > 0:
		runs = 1
	case testing.Short() || raceEnabled:
		runs = 10
	}
	sum := map[string]int{}
	for seed := first; seed < first+uint64(runs) && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &farm{t: t, rng: rand.New(rand.NewPCG(seed, 3)), shared: store.NewMemory(nil), steps: map[string]int{}, done: map[string]bool{}, counts: sum}
				f.play()
			})
		})
	}
	t.Log(sum)
	for _, what := range []string{"completed", "cancelled", "expired", "killed", "answered", "foreign"} {
		if runs >= 10 && sum[what] == 0 && !t.Failed() {
			t.Errorf("nothing was %s", what)
		}
	}
}

// A farm is a server that runs tasks on several replicas.
type farm struct {
	t        *testing.T
	rng      *rand.Rand
	shared   store.Store
	replicas []*taskReplica
	tasks    []*modelTask
	counts   map[string]int

	mu    sync.Mutex
	steps map[string]int  // number of times each step started
	done  map[string]bool // steps whose value Once has returned
}

// A taskReplica is a process whose store fails once it is killed.
type taskReplica struct {
	store.Store

	killed  atomic.Bool
	manager *tasks.Manager
	conns   []*mcp.Conn // one per principal
}

// hasExpired reports whether a task may have expired. It was created a little before its
// client was notified.
func (m *modelTask) hasExpired() bool { return time.Now().Add(time.Second).After(m.expires) }

// A modelTask is the model of a task.
type modelTask struct {
	id        string
	number    int
	owner     int
	expires   time.Time
	answers   map[string]string
	cancelled bool
	ended     *tasks.DetailedTask // final state as first seen
}

var errKilled = errors.New("the process was killed")

func (r *taskReplica) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if r.killed.Load() {
		return nil, 0, errKilled
	}
	return r.Store.Get(ctx, key)
}

func (r *taskReplica) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if r.killed.Load() {
		return 0, errKilled
	}
	return r.Store.Put(ctx, key, value, version, ttl)
}

func (r *taskReplica) Take(ctx context.Context, key string) ([]byte, error) {
	if r.killed.Load() {
		return nil, errKilled
	}
	return r.Store.Take(ctx, key)
}

func (r *taskReplica) Publish(ctx context.Context, topic string, message []byte) error {
	if r.killed.Load() {
		return errKilled
	}
	return r.Store.Publish(ctx, topic, message)
}

const (
	taskLease = 3 * time.Second
	shortLife = 20 * time.Second
	longLife  = time.Hour
)

func (f *farm) startReplica() {
	r := &taskReplica{Store: f.shared}
	mux := mcp.NewMux("farm", "1", &mcp.MuxOptions{Logger: quiet})
	r.manager = tasks.New("farm", &tasks.Options{Store: r, Lease: taskLease, PollInterval: 100 * time.Millisecond, MaxRunning: 3, MaxAttempts: 1000, TTL: longLife, Logger: quiet})
	r.manager.Register(mux)
	mux.With(r.manager.Background(nil)).Tool("long", mcp.ToolFunc(f.run, nil))
	mux.With(r.manager.Background(&tasks.BackgroundOptions{TTL: shortLife})).Tool("short", mcp.ToolFunc(f.run, nil))
	f.t.Cleanup(func() { _ = r.manager.Shutdown(context.Background()) })
	for _, name := range []string{"ada", "bob"} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: name}, Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}, Elicit: decline}}
		r.conns = append(r.conns, client.Connect(f.t, mux))
	}
	f.replicas = append(f.replicas, r)
}

// decline is never called: runs answer by themselves.
func decline(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
}

type taskIn struct {
	Task int `json:"task"`
}

type taskAnswer struct {
	Text string `json:"text"`
}

// run is the tool: three steps, with a question after each of the first two.
func (f *farm) run(ctx context.Context, in taskIn) (string, error) {
	var texts []string
	for i := range 3 {
		if err := f.step(ctx, fmt.Sprint("task ", in.Task, " step ", i)); err != nil {
			return "", err
		}
		if i == 2 {
			break
		}
		key := fmt.Sprint("question ", i)
		a, err := mcp.Elicit[taskAnswer](ctx, key, "The answer to "+key+"?")
		if err != nil {
			return "", err
		}
		texts = append(texts, a.Text)
	}
	return strings.Join(texts, " "), nil
}

func (f *farm) step(ctx context.Context, name string) error {
	f.mu.Lock()
	pause := time.Duration(f.rng.IntN(3000)) * time.Millisecond
	f.mu.Unlock()
	_, err := mcp.Once(ctx, name, func(context.Context) (bool, error) {
		f.mu.Lock()
		f.steps[name]++
		if f.done[name] {
			f.t.Errorf("%s was completed and begins again", name)
		}
		f.mu.Unlock()
		<-time.After(pause)
		return true, nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.done[name] = true
	}
	return err
}

func (f *farm) intN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n)
}

// play performs eighty random operations and then brings every task to its end.
func (f *farm) play() {
	for range 3 {
		f.startReplica()
	}
	for range 80 {
		<-time.After(time.Duration(f.intN(1500)) * time.Millisecond)
		switch n := f.intN(20); {
		case n < 4 || len(f.tasks) == 0:
			f.create()
		case n < 8:
			f.look(f.anyTask())
		case n < 14:
			f.answer(f.anyTask())
		case n < 16:
			f.cancel(f.anyTask())
		case n < 18:
			f.lookAsStranger(f.anyTask())
		default:
			f.kill()
		}
	}
	for _, m := range f.tasks {
		for n := 0; n < 300 && f.goesOn(m); n++ {
			f.answer(m)
			<-time.After(500 * time.Millisecond)
		}
		if f.goesOn(m) {
			f.t.Errorf("the task %d does not end", m.number)
		}
	}
}

func (f *farm) anyTask() *modelTask      { return f.tasks[f.intN(len(f.tasks))] }
func (f *farm) anyReplica() *taskReplica { return f.replicas[f.intN(len(f.replicas))] }

func (f *farm) handle(m *modelTask, principal int) *tasks.Handle {
	return tasks.Attach(f.anyReplica().conns[principal], m.id)
}

func (f *farm) create() {
	tool, life := "long", longLife
	if f.intN(3) == 0 {
		tool, life = "short", shortLife
	}
	m := &modelTask{number: len(f.tasks), owner: f.intN(2), answers: map[string]string{}}
	params := &mcp.CallToolParams{Name: tool, Arguments: fmt.Appendf(nil, `{"task":%d}`, m.number)}
	h, _, err := tasks.Start(f.t.Context(), f.anyReplica().conns[m.owner], params)
	if err != nil || h == nil {
		f.t.Fatalf("no task: %v", err)
	}
	m.id, m.expires = h.ID, time.Now().Add(life)
	f.tasks = append(f.tasks, m)
}

// kill makes the store of a replica fail permanently, and starts another replica.
func (f *farm) kill() {
	i := f.intN(len(f.replicas))
	f.replicas[i].killed.Store(true)
	f.replicas = slices.Delete(f.replicas, i, i+1)
	f.startReplica()
	f.counts["killed"]++
}

// look reads a task and compares it with the model. It returns nil if the task has expired.
func (f *farm) look(m *modelTask) *tasks.DetailedTask {
	d, err := f.handle(m, m.owner).Get(f.t.Context())
	if mcp.CodeOf(err) == mcp.CodeInvalidParams && m.hasExpired() {
		f.counts["expired"]++
		return nil
	}
	if err != nil {
		f.t.Errorf("the task %d is lost: %v", m.number, err)
		return nil
	}
	switch wrong := m.check(d); {
	case wrong != "":
		f.t.Errorf("the task %d, with the answers %v, cancelled %v, is %s (%s %s): %s", m.number, m.answers, m.cancelled, d.Status, d.StatusMessage, d.Result, wrong)
	case d.Status.IsFinal() && m.ended == nil:
		m.ended = d
		f.counts[string(d.Status)]++
	}
	return d
}

// check describes what is wrong with the state of a task, or returns "".
func (m *modelTask) check(d *tasks.DetailedTask) string {
	if m.ended != nil && (d.Status != m.ended.Status || !d.LastUpdatedAt.Equal(m.ended.LastUpdatedAt) || string(d.Result) != string(m.ended.Result)) {
		return fmt.Sprintf("it has ended before as %s %s", m.ended.Status, m.ended.Result)
	}
	switch d.Status {
	case tasks.Completed:
		want := `"text":"` + m.answers["question 0"] + " " + m.answers["question 1"] + `"`
		if len(m.answers) != 2 || !strings.Contains(string(d.Result), want) {
			return "it must not have this result"
		}
	case tasks.Cancelled:
		if !m.cancelled {
			return "it was not cancelled"
		}
	case tasks.Failed:
		if !m.hasExpired() {
			return "it must not fail before it expires"
		}
	case tasks.InputRequired:
		for key := range d.InputRequests {
			if m.answers[key] != "" {
				return "it has this answer"
			}
		}
		if len(d.InputRequests) != 1 || m.cancelled {
			return "it must not ask"
		}
	}
	return ""
}

// goesOn reports whether a task has not ended.
func (f *farm) goesOn(m *modelTask) bool {
	d := f.look(m)
	return d != nil && !d.Status.IsFinal()
}

// answer answers a pending question of a task.
func (f *farm) answer(m *modelTask) {
	d := f.look(m)
	if d == nil || d.Status != tasks.InputRequired {
		return
	}
	key := slices.Collect(maps.Keys(d.InputRequests))[0]
	text := fmt.Sprint("answer-", f.intN(1000))
	err := f.handle(m, m.owner).Update(f.t.Context(), map[string]json.RawMessage{key: fmt.Appendf(nil, `{"action":"accept","content":{"text":%q}}`, text)})
	switch {
	case err == nil:
		m.answers[key] = text
		f.counts["answered"]++
	case !m.hasExpired():
		f.t.Errorf("the task %d cannot be answered: %v", m.number, err)
	}
}

func (f *farm) cancel(m *modelTask) {
	err := f.handle(m, m.owner).Cancel(f.t.Context())
	switch {
	case err == nil && m.ended == nil:
		m.cancelled = true
	case err != nil && !m.hasExpired():
		f.t.Errorf("the task %d cannot be cancelled: %v", m.number, err)
	}
}

// lookAsStranger reads a task as the other principal, which must fail.
func (f *farm) lookAsStranger(m *modelTask) {
	if d, err := f.handle(m, 1-m.owner).Get(f.t.Context()); mcp.CodeOf(err) != mcp.CodeInvalidParams {
		f.t.Errorf("a stranger sees the task %d: %+v, %v", m.number, d, err)
	}
	f.counts["foreign"]++
}
