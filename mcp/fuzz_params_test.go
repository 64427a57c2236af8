// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// stopper ends a subscription as soon as it is acknowledged, and checks the notifications
// about a request.
type stopper struct {
	t    *testing.T
	stop context.CancelFunc
}

func (s stopper) Notify(_ context.Context, method string, params json.RawMessage) error {
	if m, err := transport.ParseMessage(transport.AppendNotification(nil, method, params)); err != nil || m.Method == "" {
		s.t.Errorf("the notification %s has the params %s: %v", method, params, err)
	}
	if method == mcp.NotificationAcknowledged {
		s.stop()
	}
	return nil
}

// Whatever the params of a request, it is answered with a result of its method or with an
// error that is not internal. The mux has everything, including a gateway.
func FuzzParams(f *testing.F) {
	bell := newAlarm()
	logger := slog.New(bell)
	mux := stocked(logger)
	mountGateway(f, mux, logger)
	methods := methodsOf(coreSamples)
	for i, method := range methods {
		for _, s := range coreSamples {
			if s.method == method {
				f.Add(uint8(i), []byte(s.params(metaModern)), uint64(0))
				f.Add(uint8(i), []byte(s.params(metaModern)), uint64(len(s.members)+1))
			}
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, params []byte, seed uint64) {
		method := methods[int(i)%len(methods)]
		s := sample{method: method}
		message := bytes.Replace([]byte(s.message(1, "")), []byte("{}"), mutated(params, seed), 1)
		m, err := transport.ParseMessage(message)
		var req *mcp.Request
		if err == nil {
			req, err = core.NewRequest(&m)
		}
		if err != nil {
			if response := core.AppendError(nil, m.ID, err); !json.Valid(response) || mcp.CodeOf(err) == mcp.CodeInternalError {
				t.Errorf("refused with %s", response)
			}
			return
		}
		if core.CheckMeta(req) != nil || core.CheckVersion(req) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := core.Serve(ctx, mux, req, stopper{t, cancel}, logger)
		bell.check(t)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("%s took a minute", message)
		}
		if (res == nil) == (err == nil) && !req.IsNotification() {
			t.Errorf("%s: got %v and %v", message, res, err)
		}
		if !req.IsNotification() && !errors.Is(err, context.Canceled) {
			checkResponse(t, req.Version(), method, req.ID, mcp.AppendResponse(nil, req, res, err))
		}
	})
}

// mountGateway mounts a connection to a second server that has everything.
func mountGateway(f *testing.F, mux *mcp.Mux, logger *slog.Logger) {
	far := memory(f, stocked(logger))
	conn, err := mcp.NewClient("gateway", "v1", &mcp.ClientOptions{Forward: true, Logger: logger}).Connect(f.Context(), far)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	mux.Mount("gw_", conn)
	for _, s := range coreSamples {
		if s.method == mcp.MethodCallTool {
			gated := sample{s.method, string(bytes.Replace([]byte(s.members), []byte(`"name":"`), []byte(`"name":"gw_`), 1))}
			f.Add(uint8(2), []byte(gated.params(metaModern)), uint64(0))
		}
	}
	f.Add(uint8(7), []byte(sample{"", `"uri":"mount:gw_:test://fixed"`}.params(metaModern)), uint64(0))
}

// Sealed state is accepted only unchanged and only with its own request. Answers to its
// questions never do harm.
func FuzzRequestState(f *testing.F) {
	bell := newAlarm()
	mux := stocked(slog.New(bell))
	cl := &mcptest.Client{Principal: &mcp.Principal{Subject: "ann"}}
	accept := []byte(`{"k":{"action":"accept","content":{"ok":true}}}`)
	f.Add([]byte(`{"a":1.0,"b":["x"]}`), []byte(`{ "b":["x"], "a":1.0 }`), accept, uint16(0), byte(0), "")
	f.Add([]byte(`{"a":1.0}`), []byte(`{"a":1}`), accept, uint16(0), byte(0), "")
	f.Add([]byte(`{}`), []byte(`{}`), []byte(`{"k":{"action":"cancel"},"other":1}`), uint16(9), byte(1), "")
	f.Add([]byte(`{}`), []byte(`{}`), []byte(`{}`), uint16(0), byte(0), "bm90IHNlYWxlZA")
	f.Fuzz(func(t *testing.T, args, again, answers []byte, at uint16, change byte, other string) {
		if !isStrictObject(args) || !isStrictObject(again) || !isStrictObject(answers) || len(args)+len(again)+len(answers) > 10_000 {
			t.Skip()
		}
		if res, _, _ := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, tool("ask", string(args)))); isToolError(res) {
			t.Skip("what the tool cannot take, such as 1e4444, is not asked about")
		}
		sealed := stateOf(t, mux, cl, tool("ask", string(args)))
		state := []byte(*sealed)
		if at := int(at) % len(state); other == "" {
			state[at] ^= change & 0x7f
		} else {
			state = []byte(other)
		}
		p, _ := json.Marshal(map[string]any{
			"name": "ask", "arguments": json.RawMessage(again), "inputResponses": json.RawMessage(answers), "requestState": string(state),
		})
		res, _, err := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, json.RawMessage(p)))
		bell.check(t)
		genuine := string(state) == *sealed && sameJSON(args, again)
		switch code := mcp.CodeOf(err); {
		case genuine && code != 0 && code != mcp.CodeInvalidParams || !genuine && code != mcp.CodeInvalidParams:
			t.Errorf("state for %s, changed %t, came with %s and %s: %v, %v", args, string(state) != *sealed, again, answers, res, err)
		case genuine && bytes.Equal(answers, accept) && err != nil:
			t.Errorf("state for %s was refused: %v", args, err)
		}
	})
}

func isToolError(res mcp.Result) bool {
	r, ok := res.(*mcp.CallToolResult)
	return ok && r.IsError
}

func isStrictObject(data []byte) bool {
	m, err := transport.ParseMessage(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"x","params":%s}`, data))
	if err != nil {
		return false
	}
	_, err = core.NewRequest(&m)
	return err == nil
}

// sameJSON compares JSON by value, and numbers by their digits.
func sameJSON(a, b []byte) bool {
	var v [2]any
	for i, data := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if d.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}

// Every text survives encoding in a header. Values that are not encoded are used unchanged
// or rejected.
func FuzzHeaderValue(f *testing.F) {
	for _, text := range []string{
		"", "get_weather", "us-west 1", " padded ", "日本語", "file:///a b/ü", "line\r\nX-Injected: 1", "tab\there", "\x7f", "\xff",
		"=?base64?SGVsbG8=?=", "=?base64?", "?=", "=?base64??=", "=?base64?SGVsbG8?=", "=?base64?SGVsbG9=?=", "=?base64?SGVs bG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?SGVs\nbG8=?=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := transport.EncodeHeaderValue(text)
		if strings.Trim(value, " \t") != value {
			t.Errorf("%q becomes %q, which loses its spaces on the way", text, value)
		}
		for _, c := range []byte(value) {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%q becomes %q, which is no header value", text, value)
			}
		}
		if back, err := transport.DecodeHeaderValue(value); err != nil || back != text {
			t.Errorf("%q becomes %q, and then %q, %v", text, value, back, err)
		}
		decoded, err := transport.DecodeHeaderValue(text)
		inner, isEncoded := strings.CutPrefix(text, "=?base64?")
		inner, ended := strings.CutSuffix(inner, "?=")
		switch {
		case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' || r > 0x7e }): // a tab is allowed in a header
			if err == nil {
				t.Errorf("%q, which must be encoded, is decoded as %q", text, decoded)
			}
		case !isEncoded || !ended:
			if err != nil || decoded != text {
				t.Errorf("%q, which is not encoded, is decoded as %q, %v", text, decoded, err)
			}
		case err == nil && base64.StdEncoding.EncodeToString([]byte(decoded)) != inner:
			t.Errorf("%q is decoded as %q, whose encoding it is not", text, decoded)
		}
	})
}
