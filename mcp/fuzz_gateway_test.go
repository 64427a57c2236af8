// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// request holds the params of a request as one reader understands them: the middleware of a
// gateway, or the server behind it.
type request struct {
	Name      string          `json:"name"`
	URI       string          `json:"uri"`
	Arguments json.RawMessage `json:"arguments"`
	Ref       struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	} `json:"ref"`
	Argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
	Context struct {
		Arguments map[string]string `json:"arguments"`
	} `json:"context"`
}

// seen returns what middleware finds in a request through the API of psi.
func seen(req *mcp.Request) (r request, err error) {
	r.Arguments = req.Arguments()
	switch req.Method {
	case mcp.MethodReadResource:
		r.URI = req.Name()
	case mcp.MethodComplete:
		var p mcp.CompleteParams
		if err := req.Decode(&p); err != nil {
			return r, err
		}
		r.Ref.Type, r.Ref.Name, r.Ref.URI = p.Ref.Type, p.Ref.Name, p.Ref.URI
		r.Argument.Name, r.Argument.Value = p.Argument.Name, p.Argument.Value
		if p.Context != nil {
			r.Context.Arguments = p.Context.Arguments
		}
	default:
		r.Name = req.Name()
	}
	return r, nil
}

// watched is a gateway that records what its middleware saw in a request and what the
// server behind it read. The server decodes like encoding/json: member names match in any
// case, and the last one counts.
type watched struct {
	name    string
	gateway *mcp.Mux
	saw     request
	read    []request
}

// behindGateway is the prefix of the names of the server.
const behindGateway = "up_"

func newWatched(name string) *watched {
	w := &watched{name: name, gateway: mcp.NewMux("gateway", "v1", quiet())}
	w.gateway.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			var err error
			if w.saw, err = seen(req); err != nil {
				return nil, err
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return w
}

// lenient decodes and records the params of a request, or rejects them.
func (w *watched) lenient(params json.RawMessage) error {
	var r request
	if err := json.Unmarshal(params, &r); err != nil {
		return err
	}
	w.read = append(w.read, r)
	return nil
}

// inMux mounts another mux whose middleware acts as the server.
func (w *watched) inMux() {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Use(func(mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if err := w.lenient(req.Params()); err != nil {
				return nil, mcp.Errorf(mcp.CodeInvalidParams, "%w", err)
			}
			switch req.Method {
			case mcp.MethodCallTool:
				return mcp.TextResult("done"), nil
			case mcp.MethodGetPrompt:
				return &mcp.GetPromptResult{}, nil
			case mcp.MethodReadResource:
				return &mcp.ReadResourceResult{}, nil
			}
			return &mcp.CompleteResult{}, nil
		})
	})
	w.gateway.Mount(behindGateway, inner)
}

// overPipe mounts a connection to a server on a pipe, in the era of the given version.
func (w *watched) overPipe(f *testing.F, version string) {
	client, server := transport.Pipe()
	f.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			data, err := server.Read(context.Background())
			if err != nil {
				return
			}
			if answer := w.answer(data); answer != nil {
				_ = server.Write(context.Background(), answer)
			}
		}
	}()
	transport := transport.FromStream(func(context.Context) (transport.Stream, error) { return client, nil })
	opts := &mcp.ClientOptions{Version: version, Forward: true, Logger: quiet().Logger}
	conn, err := mcp.NewClient("gateway", "v1", opts).Connect(f.Context(), transport)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	w.gateway.Mount(behindGateway, conn)
}

// answer returns the response of the server on the pipe.
func (w *watched) answer(data []byte) []byte {
	var m struct {
		ID, Params json.RawMessage
		Method     string
	}
	if json.Unmarshal(data, &m) != nil || m.ID == nil {
		return nil
	}
	result := `{"resultType":"complete","content":[],"messages":[],"contents":[],"completion":{"values":[]}}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"` + "2025-11-25" + `","capabilities":{},"serverInfo":{"name":"behind","version":"1"}}`
	case mcp.MethodDiscover:
		result = `{"resultType":"complete","supportedVersions":["` + mcp.LatestVersion + `"],"capabilities":{}}`
	default:
		if w.lenient(m.Params) != nil {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"refused"}}`, m.ID)
		}
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// FuzzGatewaySees checks that the server behind a gateway reads the same name, URI and
// arguments as the gateway's middleware, or nothing.
func FuzzGatewaySees(f *testing.F) {
	mounted, old, modern := newWatched("a mux"), newWatched("a legacy server"), newWatched("a modern server")
	mounted.inMux()
	old.overPipe(f, "2025-11-25")
	modern.overPipe(f, mcp.LatestVersion)
	methods := []string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource, mcp.MethodComplete}
	seedGateway(f)
	f.Fuzz(func(t *testing.T, method uint8, params, member []byte, at uint8) {
		message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, methods[int(method)%len(methods)], withMember(params, member, at))
		for _, w := range []*watched{mounted, old, modern} {
			m, err := transport.ParseMessage(message)
			if err != nil || !m.IsRequest() {
				return
			}
			req, err := core.NewRequest(&m)
			if err != nil {
				return
			}
			w.read = nil
			_, err = core.Serve(t.Context(), w.gateway, req, nil, quiet().Logger)
			if err == nil && len(w.read) != 1 {
				t.Errorf("%s in front of %s: it was answered, and the server read %d requests", message, w.name, len(w.read))
			}
			for _, read := range w.read {
				if err := w.saw.same(read, m.Method); err != nil {
					t.Errorf("%s in front of %s: %v", message, w.name, err)
				}
			}
		}
	})
}

// seedGateway adds inputs that attackers would try.
func seedGateway(f *testing.F) {
	for method, params := range []string{
		`{"name":"up_a","arguments":{"x":1,"y":{"name":"n"}}}`,
		`{"name":"up_a","arguments":{"x":"1"}}`,
		`{"uri":"mount:up_:notes://a","arguments":{"x":1}}`,
		`{"ref":{"type":"ref/prompt","name":"up_a"},"argument":{"name":"n","value":"v"},"context":{"arguments":{"a":"b"}}}`,
	} {
		for _, member := range []string{
			``, `"name":"b"`, `"uri":"notes://b"`, `"Name":"b"`, `"URI":"notes://b"`, `"n\u0061me":"b"`, `"argument\u017f":{"x":2}`, `"ARGUMENTS":{"x":2}`,
			`"arguments":null`, `"arguments":{"x":2}`, `"name":null`, `"type":"ref/resource"`, `"Type":"ref/resource"`, `"VALUE":"w"`, `"Argument":{"name":"m"}`,
			`"Context":{"arguments":{"a":"c"}}`, `"name":7`, `"uri":{"name":"b"}`, `"params":{"name":"b"}`, `"Ref":{"name":"b"}`, `"\ud800":1`, `"_meta":{"progressToken":1}`, `"_Meta":{}`,
		} {
			for at := range uint8(4) {
				f.Add(uint8(method), []byte(params), []byte(member), at)
			}
		}
		f.Add(uint8(method), bytes.ReplaceAll([]byte(params), []byte("up_"), []byte(`\u0075p_\ud800`)), []byte{}, uint8(0))
	}
	f.Add(uint8(2), []byte(`{"uri":"mount:up_:notes://a b"}`), []byte(`"uri":"mount:up_:notes://a%20b"`), uint8(1))
	f.Add(uint8(3), []byte(`{"ref":{"type":"ref/resource","uri":"mount:up_:notes://{a}"},"argument":{"name":"a","value":""}}`), []byte(`"name":"up_b"`), uint8(1))
	f.Add(uint8(3), []byte(`{"ref":{"type":"ref/resource","uri":"mount:up_:notes://é/{a}"},"argument":{"name":"a","value":""}}`), []byte{}, uint8(0))
	f.Add(uint8(2), []byte(`{"uri":"mount:up_: "}`), []byte{}, uint8(0))
}

// withMember returns params with a member added to one of its objects, at the start or, if
// at is odd, at the end.
func withMember(params, member []byte, at uint8) []byte {
	brace, delimiter := byte('{'), 1
	if at%2 == 1 {
		brace, delimiter = '}', 0
	}
	var places []int
	for i, c := range params {
		if c == brace {
			places = append(places, i+delimiter)
		}
	}
	if len(member) == 0 || len(places) == 0 {
		return params
	}
	i := places[int(at/2)%len(places)]
	if delimiter == 1 {
		return slices.Concat(params[:i], member, []byte{','}, params[i:])
	}
	return slices.Concat(params[:i], []byte{','}, member, params[i:])
}

// same reports how what the gateway saw differs from what the server read.
func (saw request) same(read request, method string) error {
	var problems []error
	compare := func(what string, saw, read any) {
		if !reflect.DeepEqual(saw, read) {
			problems = append(problems, fmt.Errorf("the gateway saw the %s %#v, and the server read %#v", what, saw, read))
		}
	}
	if method != mcp.MethodComplete {
		compare("name", strings.TrimPrefix(saw.Name, behindGateway), read.Name)
		compare("uri", strings.TrimPrefix(saw.URI, "mount:"+behindGateway+":"), uritemplate.Normal(read.URI)) // which is as the client spelled it
		compare("arguments", decoded(saw.Arguments), decoded(read.Arguments))
		return errors.Join(problems...)
	}
	compare("type of the reference", saw.Ref.Type, read.Ref.Type)
	if saw.Ref.Type == "ref/prompt" {
		compare("prompt", strings.TrimPrefix(saw.Ref.Name, behindGateway), read.Ref.Name)
	} else {
		compare("template", strings.TrimPrefix(saw.Ref.URI, "mount:"+behindGateway+":"), uritemplate.NormalPattern(read.Ref.URI))
	}
	compare("argument", saw.Argument, read.Argument)
	if len(saw.Context.Arguments)+len(read.Context.Arguments) > 0 {
		compare("context", saw.Context.Arguments, read.Context.Arguments)
	}
	return errors.Join(problems...)
}

// decoded returns a decoded JSON value, or nil if it is absent.
func decoded(raw json.RawMessage) (v any) {
	if raw == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	return v
}
