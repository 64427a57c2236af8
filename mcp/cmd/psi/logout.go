// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
)

func logoutCommand() *command {
	c := &command{
		name: "logout", usage: "SERVER", summary: "revoke and remove the token of a login", connects: true, noResult: true,
		help: `logout ends a login that another command made: it has the authorization server revoke the token,
and removes it from the files of psi. The next command logs in again.`,
		example: "$ psi logout http://127.0.0.1:8080/mcp\n",
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		_, rest, err := e.transport(ctx, c, words)
		switch {
		case err != nil:
			return err
		case len(rest) > 0:
			return c.wrongWords("what is %q? logout takes one server", rest[0])
		case e.login == nil:
			return c.wrongWords("only servers with a URL have logins")
		}
		err = e.login.Logout(ctx)
		if errors.Is(err, errors.ErrUnsupported) {
			e.log.Warn("the token may work until it expires", "error", err)
			err = nil
		}
		if err == nil {
			e.term.printf("logged out\n")
		}
		return err
	}
	return c
}
