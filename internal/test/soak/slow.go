// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// readSlowly calls a tool that sends more than the buffers of a connection hold, and reads
// nothing. The server must not wait longer than its write timeout.
func (v *visitor) readSlowly(ctx context.Context) {
	v.calls++
	text := fmt.Sprintf("%d-%d.", v.number, v.calls)
	ended := v.server.expectFlood(text)
	begun := time.Now()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(context.WithoutCancel(ctx), "tcp", v.server.addr)
	if err != nil {
		v.report.wrongf("%s could not dial: %v", v, err)
		v.server.flooded(text)
		return
	}
	defer conn.Close()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","arguments":{"text":%q,"pause":0},"_meta":{%q:%q,%q:{},"progressToken":1}}}`,
		text, mcp.MetaProtocolVersion, mcp.LatestVersion, mcp.MetaClientCapabilities)
	request := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: flood\r\nMcp-Protocol-Version: " + mcp.LatestVersion + "\r\n" + clientHeader + ": " + strconv.Itoa(v.number) + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	_ = conn.SetWriteDeadline(begun.Add(patience))
	if _, err := conn.Write([]byte(request)); err != nil {
		v.report.wrongf("%s could not send: %v", v, err)
		v.server.flooded(text)
		return
	}
	select {
	case <-ended:
		v.report.note("read slowly", refused, time.Since(begun))
	case <-time.After(patience):
		v.failed("read slowly", begun, fmt.Errorf("the server waits for who reads nothing: %s", firstLine(conn)))
		v.server.flooded(text)
	}
}

// firstLine returns the status of the server's response, or an error text.
func firstLine(conn net.Conn) string {
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	return strings.TrimSpace(res.Status)
}
