// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// A doctor finds out why hosts do not see servers.
type doctor struct {
	hostFlags

	static  bool
	timeout time.Duration
	json    bool

	env   *env
	found []lint.Finding
	names []string // of all servers that were seen
}

func doctorCommand() *command {
	d := &doctor{}
	c := &command{
		name: "doctor", usage: "[NAME]", summary: "find out why a host does not see a server",
		help: `doctor reads the configuration files of the hosts on this machine and checks their servers, or the
one that is named: whether the file is valid, whether the host understands what is written, whether
the program exists where the host looks for it, and what it needs to run. It then connects to each
server, as the host would, and checks what it writes and which revisions it speaks; -static leaves
that out. Each line says what is wrong and what to do:

  error    the host does not see the server, or not all of it
  warning  some hosts, or some calls, fail
  note     worth knowing

The exit code is 1 if there are errors.`,
		example: "$ psi doctor -config servers.json\n",
		flags: func(f *flag.FlagSet) {
			f.Var(&d.hosts, "host", "check only this `host`, such as claude-desktop; may be repeated")
			f.StringVar(&d.config, "config", "", "check this `file`, such as .mcp.json of a project")
			f.BoolVar(&d.static, "static", false, "do not start or connect to a server")
			f.DurationVar(&d.timeout, "timeout", 30*time.Second, "how long a server may take to answer")
			f.BoolVar(&d.json, "json", false, "write the findings as JSON, for scripts")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) > 1 {
			return c.wrongWords("want one name, or none")
		}
		locations, err := d.locations(c.name)
		if err != nil {
			return err
		}
		d.env, e.client.json = e, d.json
		e.stdinServes = true // nobody is asked
		wanted := strings.Join(words, "")
		checked := d.checkAll(ctx, locations, wanted)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case wanted != "" && checked == 0:
			for _, f := range d.found { // why the file that has it may not have been read
				fmt.Fprintln(e.stderr, f)
			}
			return usagef("doctor: no host has a server %q%s; psi install adds it", wanted, nearest.Hint(wanted, d.names))
		case checked == 0 && len(d.found) == 0:
			e.term.printf("No host on this machine has a server; psi install adds one.\n")
		}
		return e.writeFindings("the configuration has", d.found)
	}
	return c
}

// checkAll checks the servers in files, or in those of all hosts if there are none. It returns
// the number of the servers checked.
func (d *doctor) checkAll(ctx context.Context, locations []config.Location, wanted string) (checked int) {
	isChosen := locations != nil
	if !isChosen {
		locations = config.Locations()
	}
	for _, l := range locations {
		file := patient{d, l, ""}
		f, err := config.Load(l.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !isChosen:
			continue
		case errors.Is(err, config.ErrNoServers) && (wanted != "" || !isChosen):
			continue
		case err != nil:
			file.report(lint.Error, "file", trimConfig(err), "correct the file, or write it with psi install; the host uses none of it")
			continue
		}
		file.checkSyntax()
		for _, s := range f.ForDirectory("").Servers {
			d.names = append(d.names, s.Name)
			if wanted == "" || s.Name == wanted {
				checked++
				patient{d, l, s.Name}.check(ctx, s)
			}
		}
	}
	return checked
}

// trimConfig returns the text of an error of package config.
func trimConfig(err error) string { return strings.TrimPrefix(err.Error(), "config: ") }

// A patient is a server in the file of a host, or the file itself if the name is "".
type patient struct {
	*doctor

	at   config.Location
	name string
}

// report adds a finding. The message and the advice are parts of a sentence.
func (p patient) report(s lint.Severity, rule, message, advice string) {
	p.found = append(p.found, lint.Finding{Severity: s, Kind: p.at.Host, Name: p.name, Rule: rule, Message: message, Advice: advice})
}

// checkSyntax checks that the host can read the file, too.
func (p patient) checkSyntax() {
	data, err := os.ReadFile(p.at.Path)
	if err != nil || !hostTraits[p.at.Host].isStrict {
		return
	}
	var object map[string]json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &object)); ok {
		before := data[:max(syntax.Offset-1, 0)]
		p.report(lint.Error, "syntax", fmt.Sprintf("%s: line %d, column %d: %v; the host reads JSON without comments and trailing commas", p.at.Path,
			1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]), syntax), "remove what is no JSON; the host uses none of the file")
	}
}

// check checks a server.
func (p patient) check(ctx context.Context, s *config.Server) {
	before := len(p.found)
	if s.Place != cmp.Or(p.at.Place, s.Place) {
		p.report(lint.Error, "place", fmt.Sprintf("it is listed in %q, where the host does not look", s.Place), fmt.Sprintf("move it into %q", p.at.Place))
	}
	if s.Disabled {
		p.report(lint.Note, "disabled", "it is disabled in the file", "enable it in the host")
		return
	}
	log := &listener{}
	isAsked := false
	t, err := s.Transport(ctx, &config.Options{
		Input: func(context.Context, config.Input) (string, error) {
			isAsked = true
			return "", errors.New("the host asks for it")
		},
		Command: &mcpstdio.CommandOptions{Logger: slog.New(log), Stderr: io.Discard},
		HTTP:    p.env.httpOptions, Logger: slog.New(log),
	})
	if isAsked {
		p.report(lint.Note, "input", "the host asks for a value of it, so it was not started", "answer the host's question once")
		return
	}
	warnings, _ := log.heard()
	for _, warning := range warnings {
		p.report(lint.Warning, "member", strings.TrimPrefix(warning, "config: "), "correct the member")
	}
	hasErrors := func() bool {
		return slices.ContainsFunc(p.found[before:], func(f lint.Finding) bool { return f.Severity == lint.Error })
	}
	p.checkLog()
	p.checkValues(s)
	if err != nil && !hasErrors() {
		p.report(lint.Error, "server", trimConfig(err), "correct the member that is named, or set its variable where the host is started")
	}
	if err != nil {
		return
	}
	if s.Command != "" {
		p.checkCommand(s)
	} else {
		p.checkURL(s)
	}
	if p.static || hasErrors() {
		return
	}
	p.env.term.progress(&mcp.ProgressParams{Progress: float64(len(p.names)), Message: "connecting to " + s.Name})
	p.connect(ctx, s, t, log)
	p.env.term.endBar()
}

// A listener remembers what transports and configuration files warn about.
type listener struct {
	mu       sync.Mutex // guards what follows
	warnings []string
	noise    string // the first line of output that is not a message
}

// noiseMessage is the log message for a line of a command's output that is not a message.
const noiseMessage = "mcpstdio: a line of the server's output is not a message"

// Enabled implements [slog.Handler].
func (*listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// WithAttrs implements [slog.Handler].
func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements [slog.Handler].
func (l *listener) WithGroup(string) slog.Handler { return l }

// Handle implements [slog.Handler].
func (l *listener) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case r.Message == noiseMessage && a.Key == "line":
			l.noise = cmp.Or(l.noise, a.Value.String())
		case r.Message != noiseMessage && a.Key == "error":
			l.warnings = append(l.warnings, a.Value.String())
		}
		return true
	})
	return nil
}

func (l *listener) heard() (warnings []string, noise string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.warnings), l.noise
}

// connect connects to a server, as the host would.
func (p patient) connect(ctx context.Context, s *config.Server, t transport.Transport, log *listener) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	conn, err := p.client("").Connect(ctx, t)
	if err == nil {
		p.describe(ctx, conn)
		_ = conn.Close() // before another is opened: two may not run at once
	} else {
		p.explain(ctx, s, err)
	}
	if _, noise := log.heard(); noise != "" {
		p.report(lint.Warning, "noise", fmt.Sprintf("it writes other text than messages to its standard output: %.80q", redact.Text(noise)),
			"write logs to standard error; some hosts show an error for each line, or disconnect")
	}
	if err != nil || !slices.Contains(mcp.ModernVersions(), conn.Version()) {
		return
	}
	older, err := p.client(mcp.LegacyVersions()[0]).Connect(ctx, t)
	if err != nil {
		p.report(lint.Warning, "revision", fmt.Sprintf("it speaks %s only, which hosts of before do not", conn.Version()), "let the server speak older revisions, too")
		return
	}
	_ = older.Close() // it has told what there was to learn
}

// client returns a client that speaks a version, or finds out which one the server speaks.
func (p patient) client(version string) *mcp.Client {
	psiVersion, _ := buildVersion()
	return mcp.NewClient("psi", psiVersion, &mcp.ClientOptions{Version: version, CallTimeout: p.timeout, Logger: slog.New(slog.DiscardHandler)})
}

// describe tells what a server offers.
func (p patient) describe(ctx context.Context, conn *mcp.Conn) {
	l, err := fetchListing(ctx, conn)
	switch {
	case err != nil:
		p.report(lint.Error, "list", "a list of it fails: "+oneLine(err.Error()), "correct the server; psi list shows the rest")
	case l.len() == 0:
		p.report(lint.Warning, "empty", "it offers no tools, prompts or resources", "check its arguments and variables; some servers offer nothing without a key")
	}
	if !p.json {
		fmt.Fprintf(p.env.stdout, "ok: %s %q: %s, %s, %s, revision %s\n", p.at.Host, printable.Line(p.name), plural(len(l.Tools), "tool"),
			plural(len(l.Prompts), "prompt"), plural(len(l.Resources)+len(l.ResourceTemplates), "resource"), conn.Version())
	}
}

// oneLine returns the beginning of an error text as one line, without secrets.
func oneLine(text string) string {
	return shorten(strings.Join(strings.Fields(redact.Text(text)), " "), 500)
}

// explain reports why a connection could not be made.
func (p patient) explain(ctx context.Context, s *config.Server, err error) {
	exit, hasExited := errors.AsType[*mcpstdio.ExitError](err)
	status, hasStatus := errors.AsType[*mcphttp.StatusError](err)
	_, sendsToken := s.Headers["Authorization"]
	switch {
	case hasExited:
		why := "its exit status is 0"
		if exit.Err != nil {
			why = exit.Err.Error()
		}
		if exit.Stderr != "" {
			why += "; it wrote: " + lastWords(exit.Stderr)
		}
		p.report(lint.Error, "exit", "it ends at once: "+why, "run the command in a terminal until it waits for input")
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && s.Command != "":
		p.report(lint.Error, "timeout", fmt.Sprintf("it runs, but does not answer within %v", p.timeout),
			"check that it is a server on standard input and output; if it downloads something first, run it once in a terminal")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.report(lint.Error, "timeout", fmt.Sprintf("it does not answer within %v", p.timeout), "check the url, and whether this machine reaches it")
	case (errors.Is(err, mcp.ErrUnauthorized) || errors.Is(err, errLogin)) && sendsToken:
		p.report(lint.Error, "credentials", "it does not accept the credentials in the headers", "renew them")
	case errors.Is(err, mcp.ErrUnauthorized) || errors.Is(err, errLogin):
		p.report(lint.Note, "login", "it requires a login", "log in from the host, or with psi list -login")
	case hasStatus && status.Status == http.StatusNotFound, hasStatus && status.Status == http.StatusMethodNotAllowed:
		p.report(lint.Error, "status", fmt.Sprintf("the url answers %d", status.Status), `check the path of the url, which often ends in /mcp; a server of HTTP+SSE needs "type": "sse"`)
	case hasStatus:
		p.report(lint.Error, "status", oneLine(status.Error()), "check the url, the headers and the log of the server")
	default:
		p.report(lint.Error, "connection", oneLine(err.Error()), "check the command or the url, and try it with psi list -v")
	}
}

// lastWords returns what a server wrote before it ended: the first line, in which Go and npm say
// what is wrong, and the last ones, in which others do.
func lastWords(text string) string {
	lines := textLines([]byte(strings.TrimSpace(text)))
	if n := len(lines); n > 4 {
		lines = []string{lines[0], "…", lines[n-2], lines[n-1]}
	}
	return oneLine(strings.Join(lines, " / "))
}
