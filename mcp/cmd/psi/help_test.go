// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// The exit codes match those listed by psi help and on the page about psi.
func TestExitCodes(t *testing.T) {
	isolate(t)
	page, err := os.ReadFile("../../../docs/psi.md")
	if err != nil {
		t.Fatal(err)
	}
	help := psi(t, "", "help").out
	for code, meaning := range map[int]string{
		exitOK: "success", exitFailed: "the server or the connection failed",
		exitUsage:        "the command line, the arguments of a tool, or a file is wrong; nothing was called",
		exitToolFailed:   "the tool was called and reported a failure",
		exitUnauthorized: "the server requires a login", exitInterrupted: "interrupted",
	} {
		if line := fmt.Sprintf("\n  %-3d  %s\n", code, meaning); !strings.Contains(help, line) {
			t.Errorf("psi help lacks %q", line)
		}
		if line := fmt.Sprintf("\n| %d | %s |\n", code, meaning); !strings.Contains(string(page), line) {
			t.Errorf("the page lacks %q", line)
		}
	}
}

// The help of a subcommand contains its usage, an example and all its flags, however it is
// requested.
func TestHelp(t *testing.T) {
	isolate(t)
	for _, c := range commands() {
		text := psi(t, "", "help", c.name)
		if again := psi(t, "", c.name, "-h"); text != again || text.code != exitOK {
			t.Errorf("psi help %s and psi %s -h are not the same: %v and %v", c.name, c.name, text, again)
		}
		want := []string{"\nusage: psi " + c.name, "\nexample:\n  $ psi " + c.name}
		if c.connects {
			want = append(want, " -- COMMAND [ARGUMENT ...]\n")
		}
		newEnv(nil, nil, nil).flagSet(c).VisitAll(func(f *flag.Flag) { want = append(want, "\n  -"+f.Name) })
		for _, part := range want {
			if !strings.Contains(text.out, part) {
				t.Errorf("psi help %s lacks %q", c.name, part)
			}
		}
	}
	for name, want := range map[string]string{
		"call":    "\n       psi call [flags] TOOL [ARGUMENT ...] -- COMMAND [ARGUMENT ...]\n",
		"gateway": "\n       psi gateway [flags] -- COMMAND [ARGUMENT ...]\n",
		"lint":    "\n       psi lint [flags] -- COMMAND [ARGUMENT ...]\n",
	} {
		if got := psi(t, "", "help", name); !strings.Contains(got.out, want) {
			t.Errorf("psi help %s lacks %q", name, want)
		}
	}
	if got := psi(t, "", "version"); !strings.HasPrefix(got.out, "psi ") || !strings.Contains(got.out, " go1.") {
		t.Errorf("psi version wrote %q", got.out)
	}
}

// Text written while the user is being asked starts on a new line.
func TestPrompted(t *testing.T) {
	screen := &screen{}
	answer := make(chan string)
	term := newTerminal(nil, screen)
	term.lines = func() <-chan string {
		term.printf("meanwhile\n")
		return answer
	}
	go func() { answer <- "yes" }()
	line, action, err := term.ask(t.Context())
	if want := "> \nmeanwhile\n"; line != "yes" || action != mcp.ActionAccept || err != nil || screen.String() != want {
		t.Errorf("got %q, %s, %v; wrote %q, want %q", line, action, err, screen, want)
	}
}

// watch runs until it is interrupted, and prints one line per change.
func TestWatch(t *testing.T) {
	isolate(t)
	mux := newServer()
	go keepChanging(t, mux)
	url := serve(t, mux)
	ctx, interrupt := context.WithCancel(t.Context())
	out := &interrupter{interrupt: interrupt, lines: 3}
	code := run(ctx, []string{"watch", "-json", url, "test://menu"}, strings.NewReader(""), out, new(strings.Builder))
	const line = `{"method":"notifications/resources/updated","uri":"test://menu"}` + "\n"
	if code != exitInterrupted || !strings.HasPrefix(out.String(), strings.Repeat(line, 3)) {
		t.Errorf("exit code %d, wrote %q", code, out)
	}
	if got := psi(t, "", "watch", url, "test://none"); got.code != exitFailed || !strings.Contains(got.errOut, `does not announce updates of "test://none"`) {
		t.Errorf("a resource that does not exist: wrote %q", got.out)
	}
}

// An interrupter interrupts a command once it has written a number of lines.
type interrupter struct {
	strings.Builder
	interrupt func()
	lines     int
}

func (i *interrupter) Write(p []byte) (int, error) {
	if i.lines--; i.lines == 0 {
		i.interrupt()
	}
	return i.Builder.Write(p)
}
