// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-psi/psi/internal/tools/compare/work"
)

// A Client calls tools by means of its Send function.
type Client struct {
	// Send sends a call of the named tool and returns the answer.
	Send    func(ctx context.Context, name string, message []byte) ([]byte, error)
	Version string
	last    atomic.Int64
}

func call[In, Out any](ctx context.Context, c *Client, name string, in In) (out Out, err error) {
	arguments, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	params, err := json.Marshal(&sentParams{callParams{name, arguments}, meta{Version: c.Version, Client: implementation{"compare", "v1"}}})
	if err != nil {
		return out, err
	}
	id := strconv.AppendInt(nil, c.last.Add(1), 10)
	message, err := json.Marshal(&request{"2.0", id, "tools/call", params})
	if err != nil {
		return out, err
	}
	answer, err := c.Send(ctx, name, message)
	if err != nil {
		return out, err
	}
	var res struct {
		ID     json.RawMessage `json:"id"`
		Result callResult      `json:"result"`
		Error  *failure        `json:"error"`
	}
	if err := json.Unmarshal(answer, &res); err != nil {
		return out, err
	}
	if res.Error != nil || res.Result.IsError || string(res.ID) != string(id) {
		return out, fmt.Errorf("%s answered %.200s", name, answer)
	}
	return out, json.Unmarshal(res.Result.Structured, &out)
}

// Add calls the tool add.
func (c *Client) Add(ctx context.Context, a, b int) (int, error) {
	out, err := call[work.AddIn, work.AddOut](ctx, c, "add", work.AddIn{A: a, B: b})
	return out.Sum, err
}

// Echo calls the tool echo.
func (c *Client) Echo(ctx context.Context, s string) (string, error) {
	out, err := call[work.Echo, work.Echo](ctx, c, "echo", work.Echo{Text: s})
	return out.Text, err
}
