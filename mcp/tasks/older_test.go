// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

const r202511 = "2025-11-25"

// newOlder returns a server with one tool of each kind.
func newOlder(t testing.TB) *replica {
	t.Helper()
	r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: 100 * time.Millisecond, Lease: 3 * time.Second, TTL: time.Minute}, nil)
	text := func(fn func(ctx context.Context) (string, error)) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return fn(ctx) }, nil)
	}
	r.tool("quick", func(context.Context) (string, error) { return "done", nil })
	r.tool("slow", func(context.Context) (string, error) { <-time.After(50 * time.Millisecond); return "slow", nil })
	r.tool("fail", func(context.Context) (string, error) { return "", errors.New("no film") })
	r.tool("ask", func(ctx context.Context) (string, error) {
		c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
		if err != nil {
			return "", err
		}
		again, err := mcp.Elicit[codec](ctx, "again", "And which again?")
		return c.Codec + again.Codec, err
	})
	r.tool("wait", func(ctx context.Context) (string, error) {
		mcp.Progress(ctx, 1, 2, "waiting")
		<-ctx.Done()
		return "stopped", context.Cause(ctx)
	})
	r.tool("stubborn", func(ctx context.Context) (string, error) { <-ctx.Done(); return "done", nil })
	r.background.Tool("break", mcp.Describe(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(-32050, "the farm is on fire")
	}), &mcp.Tool{}))
	r.mux.Tool("plain", text(func(context.Context) (string, error) { return "plain", nil }))
	r.mux.With(r.manager.Background(&tasks.BackgroundOptions{Required: true})).Tool("long", text(func(context.Context) (string, error) { return "long", nil }))
	r.mux.With(r.manager.Background(&tasks.BackgroundOptions{After: time.Hour})).Tool("after", text(func(context.Context) (string, error) { return "after", nil }))
	return r
}

// A complete conversation about tasks of 2025-11-25 is compared with a golden file.
func TestOlderConversation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		c := dialOlder(t, r.mux, &mcp.Principal{Issuer: "a", Subject: "ada"}, r202511)
		c.call("tools/list", `{}`)
		asks := c.start("ask", `{"ttl":30000}`)
		synctest.Wait()
		c.state(asks)
		c.send("tasks/result", fmt.Sprintf(`{"taskId":%q}`, asks))
		for range 2 {
			for {
				if m := c.read(); m.Method == mcp.MethodElicit {
					c.answer(m, `{"codec":"av1"}`)
					break
				}
			}
			synctest.Wait()
		}
		for c.read().Result == nil {
		}
		c.state(asks)
		for _, tool := range []string{"fail", "break"} {
			<-time.After(2 * time.Second)
			id := c.start(tool, `{}`)
			synctest.Wait()
			c.state(id)
			c.about("tasks/result", id)
		}
		<-time.After(2 * time.Second)
		waits := c.start("wait", `{}`)
		<-time.After(time.Second)
		c.about("tasks/cancel", waits)
		c.about("tasks/result", waits)
		c.call("tasks/list", `{}`)

		golden.Check(t, "older", c.golden())
	})
}

// Mistakes of a 2025-11-25 client result in the errors of its revision.
func TestOlderErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		ada := dialOlder(t, r.mux, &mcp.Principal{Issuer: "a", Subject: "ada"}, r202511)
		bob := dialOlder(t, r.mux, &mcp.Principal{Issuer: "a", Subject: "bob"}, r202511)
		foreign, own := bob.start("quick", `{}`), ada.start("quick", `{}`)
		synctest.Wait()
		for _, test := range []struct {
			method, params string
			code           int
			want           string
		}{
			{"tools/call", `{"name":"plain","arguments":{},"task":{}}`, mcp.CodeMethodNotFound, "cannot be called as a task"},
			{"tools/call", `{"name":"long","arguments":{}}`, mcp.CodeMethodNotFound, "only be called as a task"},
			{"tools/call", `{"name":"none","arguments":{},"task":{}}`, mcp.CodeInvalidParams, "none"},
			{"tools/call", `{"name":"quick","arguments":{},"task":7}`, mcp.CodeInvalidParams, "params.task"},
			{"tools/call", `{"name":"quick","arguments":{},"task":{"ttl":"long"}}`, mcp.CodeInvalidParams, "params.task"},
			{"tools/call", `{"name":"quick","arguments":{},"task":{"ttl":-1}}`, mcp.CodeInvalidParams, "negative"},
			{"tasks/get", `{"taskId":"FOREIGN"}`, mcp.CodeInvalidParams, "names no task"},
			{"tasks/result", `{"taskId":"FOREIGN"}`, mcp.CodeInvalidParams, "names no task"},
			{"tasks/cancel", `{"taskId":"FOREIGN"}`, mcp.CodeInvalidParams, "names no task"},
			{"tasks/get", `{"taskId":"x"}`, mcp.CodeInvalidParams, "names no task"},
			{"tasks/get", `{}`, mcp.CodeInvalidParams, "taskId"},
			{"tasks/result", `{"taskId":7}`, mcp.CodeInvalidParams, "taskId"},
			{"tasks/cancel", `{"taskId":"OWN"}`, mcp.CodeInvalidParams, "completed"},
			{"tasks/update", `{"taskId":"OWN","inputResponses":{}}`, mcp.CodeMethodNotFound, "tasks/update"},
			{"tasks/list", `{"cursor":"x"}`, mcp.CodeInvalidParams, "cursor"},
			{"tasks/list", `{"cursor":7}`, mcp.CodeInvalidParams, "cursor"},
		} {
			params := strings.NewReplacer("FOREIGN", foreign, "OWN", own).Replace(test.params)
			m, _ := ada.call(test.method, params)
			if m.Error == nil || m.Error.Code != test.code || !strings.Contains(m.Error.Message, test.want) {
				t.Errorf("%s %s: %s, %v", test.method, params, m.Result, m.Error)
			}
		}
	})
}

// A tool that becomes a task only after some time becomes one immediately if the client
// asks for a task. It can also be called without one.
func TestOlderAfter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := dialOlder(t, newOlder(t).mux, nil, r202511)
		id := c.start("after", `{}`)
		if m := c.about("tasks/result", id); !strings.Contains(string(m.Result), `"text":"after"`) {
			t.Errorf("%s, %v", m.Result, m.Error)
		}
		for _, tool := range []string{"after", "quick", "plain"} {
			if m, _ := c.call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool)); !strings.Contains(string(m.Result), `"content"`) {
				t.Errorf("%s: %s, %v", tool, m.Result, m.Error)
			}
		}
	})
}

// The client's TTL is used if it is shorter than the server's.
func TestOlderTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := dialOlder(t, newOlder(t).mux, nil, r202511)
		for terms, want := range map[string]int64{`{}`: 60_000, `{"ttl":1000}`: 1000, `{"ttl":61000}`: 60_000, `{"ttl":1e300}`: 60_000, `{"ttl":null}`: 60_000, `{"ttl":0}`: 1} {
			if s := c.state(c.start("wait", terms)); s.TTL == nil || *s.TTL != want || *s.PollInterval != 100 {
				t.Errorf("%s: %+v", terms, s)
			}
		}
		id := c.start("quick", `{"ttl":1000}`)
		<-time.After(time.Minute)
		if m := c.about("tasks/get", id); m.Error == nil || m.Error.Code != mcp.CodeInvalidParams {
			t.Errorf("an expired task: %s, %v", m.Result, m.Error)
		}
	})
}

// A cancelled task stays cancelled, whatever its handler returns.
func TestOlderCancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := dialOlder(t, newOlder(t).mux, nil, r202511)
		for _, tool := range []string{"stubborn", "wait", "ask"} {
			id := c.start(tool, `{}`)
			synctest.Wait()
			var s olderTask
			if m := c.about("tasks/cancel", id); json.Unmarshal(m.Result, &s) != nil || s.Status != "cancelled" {
				t.Errorf("%s: %s, %v", tool, m.Result, m.Error)
			}
			<-time.After(10 * time.Second)
			if s := c.state(id); s.Status != "cancelled" {
				t.Errorf("%s is %s afterwards", tool, s.Status)
			}
			if m := c.about("tasks/cancel", id); m.Error == nil || m.Error.Code != mcp.CodeInvalidParams {
				t.Errorf("%s was cancelled twice: %s", tool, m.Result)
			}
		}
	})
}

// A question that another client answers is withdrawn, and tasks/result continues.
func TestOlderAnsweredElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		c := dialOlder(t, r.mux, nil, r202511)
		id := c.start("ask", `{}`)
		c.send("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		first := c.read()
		for first.Method != mcp.MethodElicit {
			first = c.read()
		}
		h := tasks.Attach(r.connect(t), id)
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		withdrawn := false
		for {
			m := c.read()
			withdrawn = withdrawn || m.Method == mcp.NotificationCancelled && strings.Contains(string(m.Params), string(first.ID))
			if m.Method == mcp.MethodElicit {
				c.answer(m, `{"codec":"h265"}`)
			}
			if m.Error != nil {
				t.Fatal(m.Error)
			}
			if m.Result != nil {
				if !withdrawn || !strings.Contains(string(m.Result), "av1h265") {
					t.Errorf("withdrawn: %t; %s", withdrawn, m.Result)
				}
				return
			}
		}
	})
}

// If a state from before the question is pushed late, the question is not withdrawn.
func TestOlderLateState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		asked := make(chan struct{})
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			var p struct {
				Notifications struct {
					TaskIDs []string `json:"taskIds"`
				} `json:"notifications"`
			}
			if req.Method != mcp.MethodListen || req.Decode(&p) != nil || p.Notifications.TaskIDs == nil {
				return r.mux.ServeMCP(ctx, req)
			}
			<-asked
			created := time.Now().Add(-time.Minute)
			late := tasks.Task{ID: p.Notifications.TaskIDs[0], Status: tasks.Working, CreatedAt: created, LastUpdatedAt: created}
			accepted := map[string]any{"notifications": map[string]any{"taskIds": p.Notifications.TaskIDs}}
			err := errors.Join(req.Notify(ctx, mcp.NotificationAcknowledged, accepted), req.Notify(ctx, tasks.NotificationTask, late))
			<-ctx.Done()
			return nil, err
		})
		c := dialOlder(t, h, nil, r202511)
		c.send("tasks/result", fmt.Sprintf(`{"taskId":%q}`, c.start("ask", `{}`)))
		for questions := 0; ; {
			m := c.read()
			switch {
			case m.Method == mcp.MethodElicit:
				if questions++; questions == 1 {
					close(asked)
					synctest.Wait()
				}
				c.answer(m, `{"codec":"av1"}`)
			case m.Method == mcp.NotificationCancelled:
				t.Errorf("a question was withdrawn: %s", m.Params)
			case m.Result != nil:
				if questions != 2 || !strings.Contains(string(m.Result), "av1av1") {
					t.Errorf("%d questions, %s", questions, m.Result)
				}
				return
			}
		}
	})
}

// A caller can list its own tasks page by page, and no others. Unauthenticated callers have
// no list.
func TestOlderList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		ada := dialOlder(t, r.mux, &mcp.Principal{Issuer: "a", Subject: "ada"}, r202511)
		bob := dialOlder(t, r.mux, &mcp.Principal{Issuer: "a", Subject: "bob"}, r202511)
		bob.start("quick", `{}`)
		want := map[string]bool{}
		for range 120 {
			want[ada.start("quick", `{}`)] = true
			<-time.After(200 * time.Millisecond)
		}
		params, pages := `{}`, 0
		for params != "" {
			m, _ := ada.call("tasks/list", params)
			var page struct {
				Tasks      []olderTask
				NextCursor *string
			}
			if m.Error != nil || json.Unmarshal(m.Result, &page) != nil {
				t.Fatal(m.Error)
			}
			for _, task := range page.Tasks {
				if !want[task.TaskID] || task.Status != "completed" {
					t.Errorf("listed twice, or another's: %+v", task)
				}
				delete(want, task.TaskID)
			}
			params = ""
			if page.NextCursor != nil {
				raw, _ := json.Marshal(map[string]string{"cursor": *page.NextCursor})
				params = string(raw)
			}
			pages++
		}
		if len(want) > 0 || pages != 3 {
			t.Errorf("%d tasks are missing on %d pages", len(want), pages)
		}
		nobody := dialOlder(t, r.mux, nil, r202511)
		if m, _ := nobody.call("tasks/list", `{}`); m.Error == nil || m.Error.Code != mcp.CodeMethodNotFound {
			t.Errorf("without a caller: %s, %v", m.Result, m.Error)
		}
	})
}

// Revisions before 2025-11-25 have no tasks, and no revision has the methods of another
// one.
func TestRevisionsWithoutTasks(t *testing.T) {
	for _, version := range mcp.LegacyVersions()[1:] {
		inBubble(t, func(t *testing.T) {
			c := dialOlder(t, newOlder(t).mux, &mcp.Principal{Issuer: "a", Subject: "ada"}, version)
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
				if m := c.about(method, "x"); m.Error == nil || m.Error.Code != mcp.CodeMethodNotFound {
					t.Errorf("%s: %s: %s, %v", version, method, m.Result, m.Error)
				}
			}
			if m, _ := c.call("tools/call", `{"name":"quick","arguments":{},"task":{}}`); !strings.Contains(string(m.Result), `"content"`) {
				t.Errorf("%s: a call that asks for a task: %s, %v", version, m.Result, m.Error)
			}
			m, _ := c.call("tools/list", `{}`)
			if m.Error != nil || strings.Contains(string(m.Result), "execution") {
				t.Errorf("%s: %s, %v", version, m.Result, m.Error)
			}
			if s := c.transcript.String(); strings.Contains(s, tasks.Extension) || strings.Contains(s, `"tasks":`) {
				t.Errorf("%s: tasks are declared in %s", version, s)
			}
		})
	}
}

// Declaring the extension has no effect in older revisions.
func TestExtensionInOlderRevisions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		for _, version := range mcp.LegacyVersions() {
			declared := fmt.Sprintf(`{"elicitation":{},"extensions":{%q:{}}}`, tasks.Extension)
			c := dialDeclaring(t, r.mux, nil, version, declared)
			for _, meta := range []string{`{}`, fmt.Sprintf(`{"io.modelcontextprotocol/clientCapabilities":%s}`, declared)} {
				m, _ := c.call("tools/call", fmt.Sprintf(`{"name":"quick","arguments":{},"_meta":%s}`, meta))
				if !strings.Contains(string(m.Result), `"content"`) {
					t.Errorf("%s: %s, %v", version, m.Result, m.Error)
				}
			}
		}
	})
}

// A task outlives the session that created it, and its questions are asked in the next
// session.
func TestOlderSessionEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		first := dialOlder(t, r.mux, nil, r202511)
		id := first.start("ask", `{}`)
		first.stream.Close()
		synctest.Wait()
		second := dialOlder(t, r.mux, nil, r202511)
		second.send("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		for {
			switch m := second.read(); {
			case m.Method == mcp.MethodElicit:
				second.answer(m, `{"codec":"av1"}`)
			case m.Error != nil:
				t.Fatal(m.Error)
			case m.Result != nil:
				if !strings.Contains(string(m.Result), "av1av1") {
					t.Errorf("%s", m.Result)
				}
				return
			}
		}
	})
}

// The stream of tasks/result carries the status changes of the task.
func TestOlderStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOlder(t)
		r.tool("steps", func(ctx context.Context) (string, error) {
			for i := range 3 {
				mcp.Progress(ctx, float64(i+1), 3, "step")
				<-time.After(time.Second)
			}
			return "done", nil
		})
		c := dialOlder(t, r.mux, nil, r202511)
		id := c.start("steps", `{}`)
		m, before := c.call("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		var got []string
		for _, note := range before {
			var s olderTask
			if note.Method != "notifications/tasks/status" || json.Unmarshal(note.Params, &s) != nil || s.TaskID != id || s.Status != "working" {
				t.Errorf("%s %s", note.Method, note.Params)
			}
			if s.StatusMessage != "" {
				got = append(got, s.StatusMessage)
			}
		}
		if fmt.Sprint(got) != "[step (1 of 3) step (2 of 3) step (3 of 3)]" || !strings.Contains(string(m.Result), "done") {
			t.Errorf("%q, %s", got, m.Result)
		}
	})
}
