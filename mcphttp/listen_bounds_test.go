// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// The stream of a subscription does not keep the body of the request that opened it.
func TestFindingX5StreamKeepsNoBody(t *testing.T) {
	const size, streams, most = 2 << 20, 20, 8 << 20
	mux := mcp.NewMux("m", "v1", nil)
	mux.Resource("notes:{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
	long := strings.Repeat("x", size)
	for name, params := range map[string]string{
		"a member of params": fmt.Sprintf(`"member":%q,"notifications":{"toolsListChanged":true}`, long),
		"an accepted URI":    fmt.Sprintf(`"member":%q,"notifications":{"resourceSubscriptions":["notes:1"]}`, long),
		"a refused URI":      fmt.Sprintf(`"member":%q,"notifications":{"resourceSubscriptions":["other:%s"]}`, long, long[:8000]),
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, newHandler(t, mux, nil))
			body, h := modern(mcp.MethodListen, "", params)
			open := func() {
				conn := dialRaw(t, l)
				if _, err := io.WriteString(conn, rawRequest(http.MethodPost, body, len(body), h)); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("%v: %v", res, err)
				}
				if line, err := bufio.NewReader(res.Body).ReadString('}'); !strings.Contains(line, mcp.NotificationAcknowledged) {
					t.Fatalf("got %q, %v", line, err)
				}
			}
			open() // one-time initialization needs more
			before := heap()
			for range streams {
				open()
			}
			if kept := heap() - before; kept > most {
				t.Errorf("%d streams, opened by bodies of %d MiB, keep %d KiB", streams, size>>20, kept>>10)
			}
		})
	}
}

// heap returns the number of bytes in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // also what pools kept over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
