// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"os"

	"github.com/go-psi/psi/mcp/recording"
)

func recordCommand() *command {
	c := &command{
		name: "record", usage: "FILE SUBCOMMAND ...", summary: "run a subcommand and record its messages", raw: true,
		help: `record runs another subcommand, and writes the messages between psi and its server to a new file:
for a bug report, or for psi replay. Secrets are redacted by rules, which cannot find every one:
read the file before you pass it on.`,
		example: `$ psi record sum.jsonl call http://127.0.0.1:8080/mcp add a=2 b=3
{"sum":5}
`,
	}
	c.run = func(ctx context.Context, e *env, words []string) (err error) {
		if len(words) < 2 {
			return c.wrongWords("want a file and a subcommand")
		}
		sub, err := findCommand(words[1])
		switch {
		case err != nil:
			return err
		case !sub.connects:
			return c.wrongWords("%s talks to no server", sub.name)
		}
		f, err := os.OpenFile(words[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return &usageError{err}
		}
		recorder := recording.NewRecorder(f, nil)
		e.wrap = recorder.Transport
		err = e.run(ctx, sub, words[2:])
		e.close() // closing may send messages
		return errors.Join(err, recorder.Err(), closeRecording(f))
	}
	return c
}

// closeRecording closes the file of a recording. It removes an empty file, which would
// prevent the next attempt.
func closeRecording(f *os.File) error {
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err == nil && info.Size() == 0 {
		err = os.Remove(f.Name())
	}
	return err
}
