// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// answers is a user who answers by what the question says.
func answers(form, confirm any) *mcptest.Client {
	return &mcptest.Client{Options: mcp.ClientOptions{
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			answer := form
			if strings.HasPrefix(p.Message, "Book for") {
				answer = confirm
			}
			if answer == nil {
				return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
			}
			return mcptest.Accept(answer), nil
		},
	}}
}

func TestBook(t *testing.T) {
	four := details{Guests: 4, Table: "terrace"}
	for name, test := range map[string]struct {
		user *mcptest.Client
		want string
	}{
		"yes":      {answers(four, confirmation{true}), "Booked for 4, terrace, with a deposit of 14 euros."},
		"no":       {answers(four, confirmation{false}), "The user does not want to book."},
		"declined": {answers(nil, nil), "The user does not want to book."},
	} {
		t.Run(name, func(t *testing.T) {
			test.user.Run(t, newMux(), func(t *testing.T, c *mcp.Conn) {
				got, err := mcp.Call[string](t.Context(), c, "book", bookIn{"Roma"})
				if err != nil || got != test.want {
					t.Errorf("got %q, %v; want %q", got, err, test.want)
				}
			})
		})
	}
}
