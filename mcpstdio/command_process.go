// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

const (
	// settle is how long pipes may stay open whose process has ended, because
	// other processes have them too.
	settle = 250 * time.Millisecond
	// lag is how long a process may take to end after its pipes broke.
	lag = 4 * settle
)

var (
	errOutputClosed = errors.New("it closed its standard output, and was told to exit")
	errInputClosed  = errors.New("mcpstdio: the server closed its standard input")
)

// A process is a running server: a stream of messages.
type process struct {
	opts   CommandOptions
	log    *slog.Logger
	cmd    *exec.Cmd
	group  *group
	in     *lineWriter
	out    *output
	lines  *stream // reads out
	stderr *output
	tail   tail

	heard   chan struct{} // closed when stderr is at its end
	closing chan struct{} // closed when Close has begun
	gone    chan struct{} // closed when the process has ended
	exit    *ExitError    // set when gone is closed
	close   sync.Once
	failed  error // of Close
}

// start starts a process.
func start(cmd *exec.Cmd, opts CommandOptions) (*process, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	setGroup(cmd.SysProcAttr)
	err = cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	gone := make(chan struct{})
	p := &process{
		opts: opts, log: opts.Logger, cmd: cmd, group: newGroup(cmd.Process),
		in: newLineWriter(ours[0]), out: newOutput(ours[1], gone), stderr: newOutput(ours[2], gone),
		heard: make(chan struct{}), closing: make(chan struct{}), gone: gone,
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.log = p.log.With("command", cmd.Path, "pid", cmd.Process.Pid)
	p.lines = newStream(p.out, io.Discard, &StreamOptions{MaxMessage: opts.MaxMessage})
	if p.out.hasDeadlines() {
		p.lines.interrupts = p.out
	}
	go p.listen()
	go p.watch()
	return p, nil
}

// listen reads the standard error, whatever happens, so that the process can write.
func (p *process) listen() {
	defer close(p.heard)
	defer p.stderr.f.Close()
	to := sinks{&p.tail}
	switch {
	case p.opts.Stderr != nil:
		to = append(to, p.opts.Stderr)
	case p.opts.Logger != nil:
		lines := &lineLogger{log: p.log}
		defer lines.flush()
		to = append(to, lines)
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := p.stderr.read(buf)
		to.write(buf[:n])
		if err != nil {
			return
		}
	}
}

// watch waits for the end of the process, and ends what it left behind.
func (p *process) watch() {
	reap := awaitExit(p.cmd)
	p.sweep()
	p.group.release()
	err := reap()
	p.in.close()
	p.exit = &ExitError{Err: err, Stderr: p.tail.String()}
	close(p.gone)
	p.out.hurry()
	p.stderr.hurry()
}

// sweep ends what is left of the group of a process that has ended: those who hold
// its standard error are asked first. Others do not hold anybody up.
func (p *process) sweep() {
	wait := settle
	select {
	case <-p.closing:
		wait = p.opts.TerminateWait
	default:
	}
	p.group.terminate()
	within(wait, p.heard)
	p.group.kill()
}

// Read implements [mcp.Stream].
func (p *process) Read(ctx context.Context) ([]byte, error) {
	for {
		line, err := p.lines.Read(ctx)
		var dropped *mcp.Error
		switch {
		case errors.As(err, &dropped):
			p.log.WarnContext(ctx, "mcpstdio: a message of the server was dropped", "error", err)
			return nil, err
		case err != nil && ctx.Err() != nil: // if it is the end, the next Read finds it too
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, p.ended(ctx)
		case looksLikeMessage(line):
			return line, nil
		}
		p.log.WarnContext(ctx, "mcpstdio: a line of the server's output is no message", "line", excerpt(line))
	}
}

// Interruptible is what [mcp.Stream] says of it.
func (p *process) Interruptible() bool { return p.lines.Interruptible() }

// ended is why the output has ended. A server that cannot answer is of no use any
// more, and ends too.
func (p *process) ended(ctx context.Context) error {
	_ = p.out.f.Close()
	err := p.why(ctx, errOutputClosed)
	if errors.Is(err, errOutputClosed) {
		go p.Close()
		return &ExitError{Err: err, Stderr: p.tail.String()}
	}
	return err
}

// why explains an error of a pipe: by Close, by the end of the process, which may
// come a moment later, or else as it is. Who does not wait for that gets the cause of
// ctx.
func (p *process) why(ctx context.Context, err error) error {
	select {
	case <-p.closing:
		return mcp.ErrClosed
	default:
	}
	timer := time.NewTimer(lag)
	defer timer.Stop()
	select {
	case <-p.closing:
		return mcp.ErrClosed
	case <-p.gone:
		return p.exit
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return err
	}
}

// Write implements [mcp.Stream].
func (p *process) Write(ctx context.Context, message []byte) error {
	err := p.in.write(ctx, message)
	if err == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return p.why(ctx, errInputClosed)
}

// Close implements [mcp.Stream]: it ends the process in the way that
// basic/lifecycle asks for.
func (p *process) Close() error {
	p.close.Do(func() { p.failed = p.shutDown() })
	return p.failed
}

func (p *process) shutDown() error {
	close(p.closing)
	p.in.close()
	discarded := make(chan struct{})
	go p.out.discard(discarded)
	switch {
	case within(p.opts.ExitWait, p.gone):
	case p.terminate():
		p.log.Debug("mcpstdio: the server did not exit by itself, and was terminated")
	case p.kill():
		p.log.Warn("mcpstdio: the server had to be killed")
	default:
		return errors.New("mcpstdio: the server was killed but has not ended")
	}
	within(lag, discarded)
	return nil
}

func (p *process) terminate() bool {
	return p.group.terminate() && within(p.opts.TerminateWait, p.gone)
}

func (p *process) kill() bool {
	p.group.kill()
	return within(p.opts.KillWait, p.gone)
}

// within reports whether done is closed within a time.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// looksLikeMessage tells JSON objects, and arrays of them, from stray prints by
// their ends alone. What passes is parsed later.
func looksLikeMessage(line []byte) bool {
	begin, end, next := byte('{'), byte('}'), byte('"')
	if line[0] == '[' {
		begin, end, next = '[', ']', '{'
	}
	rest := bytes.TrimLeft(line[1:], " \t")
	return line[0] == begin && line[len(line)-1] == end && len(rest) > 0 && rest[0] == next
}

// pipes opens the standard files of a process: our ends, and its ends.
func pipes() (ours, theirs []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, err
		}
		if i == 0 {
			r, w = w, r // it reads its standard input
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// reapNow waits until a process has ended, and has its status ready.
func reapNow(cmd *exec.Cmd) (reap func() error) {
	err := cmd.Wait()
	return func() error { return err }
}
