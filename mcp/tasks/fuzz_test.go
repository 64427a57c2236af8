// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// Params of any shape return a result or an error, and leave the task unchanged.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{"taskId":"ID"}`, `{"taskId":"ID","inputResponses":{"codec":{"action":"accept","content":{"codec":"av1"}}}}`,
		`{"taskId":"ID","inputResponses":{}}`, `{"taskId":7}`, `{"notifications":{"taskIds":["ID"]}}`, `{"notifications":{"taskIds":null}}`, `{}`,
	} {
		f.Add(seed)
	}
	r := newReplica(f, store.NewMemory(nil), nil, nil)
	ctx := f.Context()
	f.Fuzz(func(t *testing.T, params string) {
		for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel, mcp.MethodListen} {
			req, err := mcp.NewRequest(method, json.RawMessage(params))
			if err != nil {
				return
			}
			if req, err = withMeta(req); err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			if res, err := serve(ctx, r.mux, req, nil); res == nil && err == nil {
				t.Errorf("%s: neither a result nor an error", method)
			}
			cancel()
		}
	})
}

// withMeta returns the request with the metadata of a client that declares the extension.
func withMeta(req *mcp.Request) (*mcp.Request, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(req.Params(), &members); err != nil {
		return nil, err
	}
	var meta struct {
		Meta json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(sender(nil, true).NewRequest(req.Method, nil).Params(), &meta); err != nil {
		return nil, err
	}
	members["_meta"] = meta.Meta
	out, err := mcp.NewRequest(req.Method, members)
	if err == nil {
		out.ID = mcp.IntID(1)
	}
	return out, err
}

// Stored data may be damaged, or written by another version of this package. It never
// causes a panic: requests return an error, and the sweeper continues with other tasks.
func FuzzRecords(f *testing.F) {
	const id = "abcdefghijklmnopqrstuvwxyz"
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"task":null}`, `{"task":{"taskId":"` + id + `","status":"working","ttlMs":null},"parts":1}`,
		`{"task":{"taskId":"` + id + `","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000},"parts":-1}`,
		`{"task":{"taskId":"` + id + `","status":"completed","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000},"parts":1,"results":1000000000}`,
		`{"task":{"taskId":"` + id + `","status":"input_required","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000},"parts":1,"asked":{"codec":{"key":"codec","digest":"x","request":{"method":"elicitation/create"}}}}`,
	} {
		f.Add(seed, seed, id+" 0\n")
	}
	f.Add(`{}`, `{}`, id+" 99999999999999999999\n"+id+" -1\n"+id+"\n \n\n{}\n"+id+" 1")
	f.Fuzz(func(t *testing.T, record, request, list string) {
		ctx, shared := t.Context(), store.NewMemory(nil)
		put := func(key, value string) {
			if _, err := shared.Put(ctx, key, []byte(value), 0, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		put("tasks/farm/task/"+id, record)
		put("tasks/farm/request/"+id+"/0", request)
		for shard := range 32 {
			put("tasks/farm/working/"+strconv.Itoa(shard), list)
		}
		r := newReplica(t, shared, &tasks.Options{PollInterval: time.Millisecond, Lease: 4 * time.Millisecond}, nil)
		r.tool("quick", func(context.Context) (string, error) { return "", nil })
		params := map[string]any{"taskId": id, "inputResponses": map[string]any{"codec": map[string]any{"action": "cancel"}}}
		for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel, tasks.MethodGet} {
			if res, err := serve(ctx, r.mux, sender(nil, true).NewRequest(method, params), nil); res == nil && err == nil {
				t.Errorf("%s: neither a result nor an error", method)
			}
		}
		<-time.After(5 * time.Millisecond) // the sweeper reads it too
	})
}
