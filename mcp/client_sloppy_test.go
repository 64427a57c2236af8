// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

const (
	description = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	initialized = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`
)

// responding returns a transport to a server of the era of version, which answers every other
// request with answer(): a member "result" or "error".
func responding(version string, answer func() string) transport.Transport {
	return fakeServer(func(method, id string) (string, bool) {
		switch {
		case id == "":
			return "", true
		case method == mcp.MethodDiscover && version != "2025-11-25":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":` + description + `}`, true
		case method == "initialize":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":` + initialized + `}`, true
		}
		return `{"jsonrpc":"2.0","id":` + id + `,` + answer() + `}`, true
	})
}

// To JSON Schema, 10.0 is an integer. The protocol's integers are codes and hints: those with
// a fraction are rounded.
func TestFindingY7IntegersInAnyForm(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for written, want := range map[string]int64{"10": 10, "10.0": 10, "1e1": 10, "10.4": 10, "9.5": 10, "-0.0": 0, "1e18": 1e18} {
			var answer string
			c := connectTo(t, responding(version, func() string { return answer }), &mcp.ClientOptions{Version: version})
			answer = `"result":{"resources":[{"uri":"a:b","name":"b","size":` + written + `}],"ttlMs":` + written + `}`
			page, err := c.ListResources(t.Context(), nil)
			if err != nil || *page.TTLMs != want || *page.Resources[0].Size != want {
				t.Errorf("%s, a list with %s: %+v, %v", version, written, page, err)
			}
			answer = `"result":{"completion":{"values":[],"total":` + written + `}}`
			values, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}})
			if err != nil || int64(*values.Completion.Total) != want {
				t.Errorf("%s, a total of %s: %+v, %v", version, written, values, err)
			}
			answer = `"result":{"content":[{"type":"resource_link","uri":"a:b","name":"b","size":` + written + `}]}`
			res, err := c.CallTool(t.Context(), tool("t", ""))
			if err != nil || *res.Content[0].(*mcp.ResourceLink).Size != want {
				t.Errorf("%s, a link with %s: %+v, %v", version, written, res, err)
			}
			answer = `"error":{"code":` + written + `,"message":"no"}`
			_, err = c.CallTool(t.Context(), tool("t", ""))
			if refused, ok := errors.AsType[*mcp.Error](err); !ok || int64(refused.Code) != want {
				t.Errorf("%s, the code %s: %v", version, written, err)
			}
			answer = `"error":{"code":429,"message":"no","data":{"retryAfterMs":` + written + `}}`
			_, err = c.CallTool(t.Context(), tool("t", ""))
			if after, ok := mcp.RetryAfter(err); !ok || after != min(time.Duration(want), 24*3600*1000)*time.Millisecond {
				t.Errorf("%s, retry after %s: %v, %v", version, written, after, err)
			}
		}
	}
}
