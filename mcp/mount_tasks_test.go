// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// taskServer is a mux with a tool. Calls of it, and requests about tasks, have the result
// or error chosen by the test.
type taskServer struct {
	*mcp.Mux
	result string // JSON
	err    error
	heard  []string // received requests
}

func newTaskServer(hasTasks bool) *taskServer {
	s := &taskServer{Mux: mcp.NewMux("child", "v1", quiet())}
	s.Tool("t", says(""))
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodCallTool, "tasks/get", "tasks/update", "tasks/cancel":
				s.heard = append(s.heard, fmt.Sprint(req.Method, " ", req.Name()))
				res := new(mcp.EmptyResult)
				if err := json.Unmarshal([]byte(s.result), res); err != nil {
					return nil, err
				}
				return res, s.err
			case mcp.MethodDiscover:
				res, err := next.ServeMCP(ctx, req)
				if d, ok := res.(*mcp.DiscoverResult); ok && hasTasks {
					d.Capabilities.Extensions = mcp.Extensions{tasksExtension: json.RawMessage("{}")}
				}
				return res, err
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return s
}

var logMessage = regexp.MustCompile(`msg="[^"]*"`)

var sealedID = regexp.MustCompile(`("taskId":|taskIds":\[)"[^"]{20,}"`)

// A mux seals the task IDs of a mounted server. The golden file also covers invalid
// requests and clients or servers without tasks.
func TestMountedTasks(t *testing.T) {
	var text strings.Builder
	play := func(child *taskServer, method, members, extensions string) string {
		var log lockedBuffer
		mux := mcp.NewMux("gateway", "v1", mcp.LimitSubscriptions(&mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, 2, 1000))
		mux.Mount("in_", child.Mux)
		meta := strings.Replace(eras[0].meta, `{"elicitation":{}}`, `{"extensions":{`+extensions+`}}`, 1)
		send := func(method, members string) string {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var acknowledged string
			req := core.Detach(mcptest.NewRequest(method, json.RawMessage(sample{method, members}.params(meta))))
			res, err := core.Serve(ctx, mux, req, notifier(func(_ string, params json.RawMessage) { acknowledged = string(params); cancel() }), quiet().Logger)
			if method == mcp.MethodListen && acknowledged != "" {
				acknowledged, _, _ = strings.Cut(acknowledged, `,"_meta"`)
				return acknowledged
			}
			return resultOf(res, err)
		}
		result, err := child.result, child.err
		child.result, child.err = `{"resultType":"task","taskId":"inner","status":"working"}`, nil
		var created struct{ TaskID string }
		_ = json.Unmarshal([]byte(send(mcp.MethodCallTool, `"name":"in_t"`)), &created)
		child.result, child.err, child.heard = result, err, nil
		members = strings.ReplaceAll(members, "ID", created.TaskID)
		outcome := sealedID.ReplaceAllString(send(method, members), `$1"..."`)
		return outcome + fmt.Sprintf(" %q", child.heard) + strings.Join(logMessage.FindAllString(log.String(), -1), " ")
	}
	const tasks, one = `"` + tasksExtension + `":{}`, `"taskId":"ID"`
	for _, c := range []struct{ method, members, result string }{
		{mcp.MethodCallTool, `"name":"in_t"`, `{"resultType":"task","taskId":"inner","status":"working","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"child"},"a":1}}`},
		{mcp.MethodCallTool, `"name":"in_t"`, `{"resultType":"task","status":"working"}`},
		{mcp.MethodCallTool, `"name":"in_t"`, `{"resultType":"task","taskId":7}`},
		{mcp.MethodCallTool, `"name":"in_t"`, `{"resultType":"task","taskId":""}`},
		{"tasks/get", one, `{"taskId":"inner","status":"working"}`},
		{"tasks/get", one, `{"taskId":"inner","status":"completed","result":{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}}`},
		{"tasks/get", one, `{"taskId":"inner","status":"completed","result":null}`},
		{"tasks/get", one, `{"taskId":"inner","status":"completed","result":[]}`},
		{"tasks/get", one, `{"taskId":"inner","status":"completed","result":{"content":[null]}}`},
		{"tasks/get", one, `{"status":"working"}`},
		{"tasks/get", `"taskId":"none"`, `{}`}, {"tasks/get", ``, `{}`},
		{"tasks/update", one + `,"inputResponses":{}`, `{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"child"}}}`}, {"tasks/update", `"taskId":"none"`, `{}`},
		{"tasks/cancel", one, `{}`}, {"tasks/cancel", `"taskId":7`, `{}`}, {"tasks/list", ``, `{}`},
		{mcp.MethodListen, `"notifications":{"taskIds":["ID"]}`, `{}`},
		{mcp.MethodListen, `"notifications":{"taskIds":["ID","none"]}`, `{}`},
		{mcp.MethodListen, `"notifications":{"taskIds":["ID","none","more"]}`, `{}`},
		{mcp.MethodListen, `"notifications":{"taskIds":"ID"}`, `{}`},
		{mcp.MethodListen, `"notifications":{"taskIds":[7]}`, `{}`},
		{mcp.MethodListen, `"notifications":{}`, `{}`},
	} {
		fmt.Fprintf(&text, "> %s %s\n", c.method, c.members)
		child := newTaskServer(true)
		child.result = c.result
		fmt.Fprintf(&text, "  %s: %s\n", c.result, play(child, c.method, c.members, tasks))
		child = newTaskServer(true)
		child.result, child.err = `{}`, mcp.Errorf(7, "seven")
		fmt.Fprintf(&text, "  an error: %s\n", play(child, c.method, c.members, tasks))
		child = newTaskServer(true)
		child.result = c.result
		fmt.Fprintf(&text, "  a client without tasks: %s\n", play(child, c.method, c.members, ""))
		child = newTaskServer(false)
		child.result = c.result
		fmt.Fprintf(&text, "  a server without tasks: %s\n", play(child, c.method, c.members, tasks))
	}
	golden.Check(t, "mounted-tasks", text.String())
}

// A mount seals the tasks and the states of its handler. Those of the middleware around it are
// the mux's own, and pass unchanged.
func TestFindingK3MountSealsWhatItsHandlerAnswers(t *testing.T) {
	state := func(s string) *mcp.InputRequired {
		return &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired}, RequestState: &s}
	}
	task := func(id string) *mcp.EmptyResult {
		extra := mcp.Extra{"taskId": json.RawMessage(`"` + id + `"`), "status": json.RawMessage(`"working"`)}
		return &mcp.EmptyResult{ResultBase: mcp.ResultBase{ResultType: tasking.ResultTask, Extra: extra}}
	}
	answers := func(s string) mcp.HandlerFunc {
		return func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Name() == s+"_task" {
				return task(s), nil
			}
			return state(s), nil
		}
	}
	mux := mcp.NewMux("gateway", "v1", quiet())
	mux.With(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(req.Name(), "own") {
				return answers("own")(ctx, req)
			}
			return next.ServeMCP(ctx, req)
		})
	}).Mount("in_", answers("theirs"))
	for name, isSealed := range map[string]bool{"own_task": false, "own_state": false, "theirs_task": true, "theirs_state": true} {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "in_" + name}))
		owner, _, _ := strings.Cut(name, "_")
		if got := resultOf(res, err); err != nil || strings.Contains(got, `"`+owner+`"`) == isSealed {
			t.Errorf("%s: %s", name, got)
		}
	}
}
