// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"github.com/go-psi/psi/internal/tools/compare/floor"
	"github.com/go-psi/psi/internal/tools/compare/side"
)

type caller struct {
	floor.Client
	close func() error
}

func (c *caller) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

func dial(_ context.Context, url, version string) (side.Caller, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	post := func(ctx context.Context, name string, message []byte) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(message))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", version)
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", name)
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %s", res.Status)
		}
		return io.ReadAll(res.Body)
	}
	return &caller{Client: floor.Client{Send: post, Version: version}}, nil
}

// start starts a program and connects a client over stdio. The client makes one call at a
// time.
func start(_ context.Context, program side.Program, version string) (side.Caller, error) {
	cmd := exec.Command(program.Path) //nolint:gosec,noctx // it is this program, and ends with its standard input
	cmd.Env = append(os.Environ(), program.Env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReaderSize(out, 64<<10)
	exchange := func(_ context.Context, _ string, message []byte) ([]byte, error) {
		if _, err := in.Write(append(message, '\n')); err != nil {
			return nil, err
		}
		return lines.ReadBytes('\n')
	}
	stop := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	return &caller{floor.Client{Send: exchange, Version: version}, stop}, nil
}
