// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// An httpConn is a client over one connection. It does as little work as possible, because
// it shares the machine with the server.
type httpConn struct {
	net.Conn
	in      *bufio.Reader
	session string // header line; "" without a session
	request []byte
	body    bytes.Buffer
}

func dialHTTP(ctx context.Context, addr string) (*httpConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &httpConn{Conn: c, in: bufio.NewReader(c)}, nil
}

// head returns a request up to the value of Content-Length.
func (c *httpConn) head(verb string, headers []string) string {
	return verb + " /mcp HTTP/1.1\r\nHost: " + c.RemoteAddr().String() + "\r\nUser-Agent: compare\r\n" +
		strings.Join(headers, "\r\n") + "\r\n" + c.session + "Content-Length: "
}

// send sends a request and reads the head of the response.
func (c *httpConn) send(head string, message []byte) (*http.Response, error) {
	c.request = append(c.request[:0], head...)
	c.request = strconv.AppendInt(c.request, int64(len(message)), 10)
	c.request = append(c.request, "\r\n\r\n"...)
	c.request = append(c.request, message...)
	if _, err := c.Write(c.request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.in, nil)
}

// exchange sends a request and returns the message in the response, the header and the
// status. The message is valid until the next call.
func (c *httpConn) exchange(head string, message []byte) ([]byte, http.Header, int, error) {
	res, err := c.send(head, message)
	if err != nil {
		return nil, nil, 0, err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(res.Body)
	_ = res.Body.Close()
	data := c.body.Bytes()
	if strings.HasPrefix(res.Header.Get("Content-Type"), acceptSSE) {
		data = lastData(data)
	}
	return data, res.Header, res.StatusCode, err
}

// lastData returns the data of the last event that has data.
func lastData(stream []byte) []byte {
	i := bytes.LastIndex(stream, []byte("data: "))
	if i < 0 {
		return nil
	}
	data, _, _ := bytes.Cut(stream[i+len("data: "):], []byte("\n"))
	return data
}

// open starts a session of the legacy era.
func (c *httpConn) open() error {
	head := c.head(http.MethodPost, legacy.headers("", "", acceptBoth))
	hello := legacy.template("initialize", `"protocolVersion":"`+legacy.version+`","capabilities":{},"clientInfo":{"name":"compare","version":"v1"}`)
	body, header, status, err := c.exchange(head, hello.message(nil, firstID))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("initialize: status %d, %.300s, %w", status, body, err)
	}
	id := header.Get("Mcp-Session-Id")
	if id == "" {
		return fmt.Errorf("initialize opened no session: %.300s", body)
	}
	c.session = "Mcp-Session-Id: " + id + "\r\n"
	head = c.head(http.MethodPost, legacy.headers("", "", acceptBoth))
	body, _, status, err = c.exchange(head, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil || status != http.StatusAccepted {
		return fmt.Errorf("initialized: status %d, %.300s, %w", status, body, err)
	}
	return nil
}

// events opens an event stream, modern or of a session, and returns its reader.
func (c *httpConn) events(e era) (*bufio.Reader, error) {
	verb, head, message := http.MethodGet, c.head(http.MethodGet, []string{"Accept: " + acceptSSE, "MCP-Protocol-Version: " + e.version}), []byte(nil)
	if e == modern {
		verb, head = http.MethodPost, c.head(http.MethodPost, e.headers("subscriptions/listen", "", acceptBoth))
		message = e.template("subscriptions/listen", `"notifications":{"toolsListChanged":true}`).message(nil, firstID)
	}
	res, err := c.send(head, message) //nolint:bodyclose // it ends with the connection
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), acceptSSE) {
		return nil, fmt.Errorf("%s for a stream: status %s, %s", verb, res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(res.Body)
	if e == modern {
		return lines, await(lines, "notifications/subscriptions/acknowledged")
	}
	return lines, nil
}

// await reads a stream up to a line that contains what.
func await(lines *bufio.Reader, what string) error {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, noEOF(err))
		}
		if bytes.Contains(line, []byte(what)) {
			return nil
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // ReadSlice returns it bare
		return io.ErrUnexpectedEOF
	}
	return err
}
