// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp/recording"
)

func replayCommand() *command {
	c := &command{
		name: "replay", usage: "FILE SUBCOMMAND|SERVER ...", summary: "replay a recording, as the server or as the client", raw: true,
		help: `replay takes the place of one side of a recording. With a subcommand, which then takes no
server, the recording answers in place of the server. With a server, psi sends it what the client
sent, and fails at the first answer that differs.`,
		example: `$ psi replay sum.jsonl call add a=2 b=3
{"sum":5}
$ psi replay sum.jsonl http://127.0.0.1:8080/mcp
the server answers as in sum.jsonl
`,
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) < 2 {
			return c.wrongWords("want a file, and a subcommand or a server")
		}
		rec, err := readRecording(words[0])
		if err != nil {
			return &usageError{err}
		}
		if sub, err := findCommand(words[1]); err == nil && sub.connects {
			e.given = recording.NewReplay(rec, &recording.ReplayOptions{AnyOrder: true}).Transport()
			return e.run(ctx, sub, words[2:])
		}
		drive := &command{name: c.name, usage: "SERVER", connects: true, noResult: true}
		drive.run = func(ctx context.Context, e *env, server []string) error {
			t, rest, err := e.transport(ctx, drive, server)
			switch {
			case err != nil:
				return err
			case len(rest) > 0:
				return c.wrongWords("want one server")
			}
			if err := recording.NewReplay(rec, nil).Drive(ctx, e.wrapped(t)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.stdout, "the server answers as in %s\n", printable.Line(words[0]))
			return err
		}
		return e.run(ctx, drive, words[1:])
	}
	return c
}

func readRecording(path string) (*recording.Recording, error) {
	f, err := os.Open(path) //nolint:gosec // the user's own words
	if err != nil {
		return nil, err
	}
	rec, err := recording.Read(f)
	return rec, errors.Join(err, f.Close())
}
