// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

func watchCommand() *command {
	var count int
	c := &command{
		name: "watch", usage: "SERVER [URI ...]", summary: "show what changes at a server", connects: true,
		help: `watch subscribes to the lists of a server and to the resources that are named, and shows a line
for each change, until it is interrupted or the server ends the subscription.`,
		example: `$ psi watch -n 1 http://127.0.0.1:8080/mcp test://menu
notifications/resources/updated test://menu
`,
		flags: func(f *flag.FlagSet) {
			f.IntVar(&count, "n", 0, "end after this `number` of changes; 0 means never")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, uris, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		changes := make(chan mcp.Change)
		sub, err := conn.Listen(ctx, mcp.SubscriptionFilter{
			ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: uris,
		}, func(change mcp.Change) {
			select {
			case changes <- change:
			case <-ctx.Done():
			}
		})
		if err != nil {
			return err
		}
		defer sub.Close()
		if err := checkAccepted(sub.Accepted(), uris); err != nil {
			return err
		}
		for seen := 0; count <= 0 || seen < count; seen++ {
			select {
			case change := <-changes:
				if err := e.writeChange(change); err != nil {
					return err
				}
			case <-sub.Done():
				if cause := context.Cause(ctx); cause != nil { // the subscription ends with ctx
					return cause
				}
				return sub.Err()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	return c
}

// checkAccepted returns an error if the server does not announce the requested changes, so
// that psi does not wait forever.
func checkAccepted(accepted mcp.SubscriptionFilter, uris []string) error {
	for _, uri := range uris {
		if !slices.Contains(accepted.ResourceSubscriptions, uri) {
			return fmt.Errorf("the server does not announce updates of %q", uri)
		}
	}
	if len(uris) == 0 && !accepted.ToolsListChanged && !accepted.PromptsListChanged && !accepted.ResourcesListChanged {
		return errors.New("the server announces no changes of its lists; name resources to watch")
	}
	return nil
}

func (e *env) writeChange(change mcp.Change) error {
	if e.client.json {
		return writeJSON(e.stdout, map[string]string{"method": change.Method, "uri": change.URI})
	}
	_, err := fmt.Fprintln(e.stdout, printable.Line(change.Method+withSpace(change.URI)))
	return err
}

// withSpace returns a word preceded by a space, or "" if the word is empty.
func withSpace(word string) string {
	if word == "" {
		return ""
	}
	return " " + word
}
