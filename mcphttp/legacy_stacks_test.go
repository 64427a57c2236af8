// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
)

// A stack that has grown does not shrink while the stream of a session is open, and a server
// may have thousands of streams. 8 KB are enough for everything before the stream, including
// initialize, and 4 KB for the net/http goroutine that waits for the connection to close. With
// Go 1.27, they are 16 and 4 KB.
func TestStacksOfStreams(t *testing.T) {
	if raceEnabled || runtime.GOARCH != "amd64" {
		t.Skip("frames are larger with the race detector, and may be with another processor")
	}
	l := listen(t, newHandler(t, adder(), nil))
	openStream(t, l) // one-time initialization needs more
	const streams = 100
	before := stacks()
	for range streams {
		openStream(t, l)
	}
	if each := (stacks() - before) / streams; each > 24<<10 {
		t.Errorf("a stream keeps %d bytes of stacks, the budget is 24 KB", each)
	}
}

// stacks returns the size of all stacks in bytes.
func stacks() int64 {
	runtime.GC() // shrinks stacks
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

// openStream opens a session and its stream on one connection, and reads the headers of both
// responses.
func openStream(t *testing.T, l *memnet.Listener) {
	t.Helper()
	conn := dialRaw(t, l)
	r := bufio.NewReader(conn)
	exchange := func(request string) *http.Response {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v: %v", res, err)
		}
		return res
	}
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + mcp.LegacyVersions()[0] +
		`","capabilities":{},"clientInfo":{"name":"c","version":"v1"}}}`
	res := exchange(rawRequest(http.MethodPost, body, len(body), nil))
	_, _ = io.Copy(io.Discard, res.Body)
	stream := exchange(rawRequest(http.MethodGet, "", 0, header{"Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")}))
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); !strings.HasPrefix(line, "id:") {
		t.Fatalf("the stream began with %q: %v", line, err)
	}
}
