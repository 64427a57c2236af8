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
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

const (
	// pipeTimeout is how long the pipes of a process may stay open after it has ended,
	// because other processes hold them too.
	pipeTimeout = 250 * time.Millisecond
	// exitTimeout is how long a process may take to end after its pipes broke, or after
	// it was killed.
	exitTimeout = 4 * pipeTimeout
)

var (
	errOutputClosed = errors.New("it closed its standard output, and was told to exit")
	errInputClosed  = errors.New("mcpstdio: the server closed its standard input")
)

// A process is a running server. It implements [transport.Stream].
//
// Two goroutines belong to it until the process has ended: copyStderr reads the standard
// error, and watch waits for the process. Close starts another that discards the rest of
// the output.
type process struct {
	opts   CommandOptions
	log    *slog.Logger
	cmd    *exec.Cmd
	group  *group
	in     *lineWriter
	out    *output
	lines  *lineReader // reads out
	stderr *output
	tail   tail
	noise  sparse.Counter // lines of out that are not messages

	stderrDone chan struct{} // closed at the end of stderr
	closing    chan struct{} // closed when Close is called
	gone       chan struct{} // closed when the process has ended
	exit       *ExitError    // set before gone is closed
	close      sync.Once
	closeErr   error
}

func startProcess(cmd *exec.Cmd, opts CommandOptions) (*process, error) {
	ours, theirs, err := openPipes()
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
	out := &output{file: ours[1], gone: gone}
	p := &process{
		opts: opts, log: opts.Logger, cmd: cmd, group: newGroup(cmd.Process),
		in: newLineWriter(ours[0]), out: out, lines: newLineReader(out, opts.MaxMessage), stderr: &output{file: ours[2], gone: gone},
		stderrDone: make(chan struct{}), closing: make(chan struct{}), gone: gone,
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.log = p.log.With("command", cmd.Path, "pid", cmd.Process.Pid)
	go p.copyStderr()
	go p.watch()
	return p, nil
}

// watch waits for the process to exit, and ends the processes that it left behind.
func (p *process) watch() {
	reap := awaitExit(p.cmd)
	p.endGroup()
	p.group.release()
	err := reap()
	p.in.close()
	p.exit = &ExitError{Err: err, Stderr: p.tail.String()}
	close(p.gone)
	p.out.limitWait()
	p.stderr.limitWait()
}

// endGroup ends the remaining processes of the group of a process that has exited.
// Processes that hold its standard error are given time to react to SIGTERM.
func (p *process) endGroup() {
	wait := pipeTimeout
	if p.isClosing() {
		wait = p.opts.WaitDelay
	}
	p.group.terminate()
	closedWithin(wait, p.stderrDone)
	p.group.kill()
}

func (p *process) isClosing() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// Read implements [transport.Stream]. It skips lines that are not messages.
func (p *process) Read(ctx context.Context) ([]byte, error) {
	for {
		line, err := p.lines.readMessage()
		if p.isClosing() { // the rest of the output is discarded
			return nil, mcp.ErrClosed
		}
		if _, refused := errors.AsType[*transport.MessageError](err); refused {
			p.log.WarnContext(ctx, "mcpstdio: a message of the server was dropped", "error", err)
			return nil, err
		}
		if err != nil {
			return nil, p.endOfOutput(ctx)
		}
		if looksLikeMessage(line) {
			return line, nil
		}
		if n, write := p.noise.Next(); write {
			p.log.WarnContext(ctx, "mcpstdio: a line of the server's output is not a message", "line", excerpt(line), "lines", n)
		}
	}
}

// endOfOutput returns why the output has ended. A server that has closed its output but is
// still running can no longer answer, so it is closed in the background.
func (p *process) endOfOutput(ctx context.Context) error {
	_ = p.out.file.Close()
	err := p.explain(ctx, errOutputClosed)
	if errors.Is(err, errOutputClosed) {
		go p.Close()
		return &ExitError{Err: err, Stderr: p.tail.String()}
	}
	return err
}

// explain returns the reason for a pipe error: Close, the end of the process, which may
// come a moment later, or err itself. It stops waiting when ctx is done.
func (p *process) explain(ctx context.Context, err error) error {
	if p.isClosing() {
		return mcp.ErrClosed
	}
	timer := time.NewTimer(exitTimeout)
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

// Write implements [transport.Stream].
func (p *process) Write(ctx context.Context, message []byte) error {
	err := p.in.writeMessage(ctx, message)
	if err == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return p.explain(ctx, errInputClosed)
}

// Close implements [transport.Stream]. It ends the process as the specification requires
// (basic/lifecycle).
func (p *process) Close() error {
	p.close.Do(func() { p.closeErr = p.shutDown() })
	return p.closeErr
}

// shutDown ends the process. It reads the rest of the output meanwhile, because a process
// that is blocked on a write does not exit.
func (p *process) shutDown() error {
	close(p.closing)
	p.in.close()
	discarded := make(chan struct{})
	go func() {
		defer close(discarded)
		defer p.out.file.Close()
		_, _ = io.Copy(io.Discard, p.out)
	}()
	switch {
	case closedWithin(p.opts.WaitDelay, p.gone):
	case p.group.terminate() && closedWithin(p.opts.WaitDelay, p.gone):
		p.log.Debug("mcpstdio: the server did not exit by itself, and was terminated")
	case p.kill():
		p.log.Warn("mcpstdio: the server had to be killed")
	default:
		p.out.interrupt()
		return errors.New("mcpstdio: the server was killed but has not ended")
	}
	closedWithin(exitTimeout, discarded)
	return nil
}

func (p *process) kill() bool {
	p.group.kill()
	return closedWithin(max(p.opts.WaitDelay, exitTimeout), p.gone)
}

// closedWithin reports whether done is closed within d.
func closedWithin(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// looksLikeMessage reports whether a line is probably a JSON object or an array of objects,
// and not a stray print, by its first and last bytes. The message is validated later.
func looksLikeMessage(line []byte) bool {
	first, last, next := byte('{'), byte('}'), byte('"')
	if line[0] == '[' {
		first, last, next = '[', ']', '{'
	}
	rest := bytes.TrimLeft(line[1:], " \t")
	return line[0] == first && line[len(line)-1] == last && len(rest) > 0 && rest[0] == next
}

// An output is our end of a pipe that a process writes to. It reports io.EOF soon after the
// process has ended, even if another process still holds the pipe.
type output struct {
	file   *os.File
	gone   <-chan struct{} // closed when the process has ended
	waited atomic.Int64    // nanoseconds spent in Read since then
}

// Read implements [io.Reader]. Output that a process wrote before it ended is returned no
// matter how late it is read: only the time spent waiting for more counts.
func (o *output) Read(b []byte) (int, error) {
	select {
	case <-o.gone:
		o.limitWait()
		start := time.Now()
		defer func() { o.waited.Add(int64(time.Since(start))) }()
	default:
	}
	n, err := o.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// limitWait bounds the wait for more output after the process has ended. Pipes on Windows
// do not support deadlines; there, the job of the process ends everything that holds them.
func (o *output) limitWait() {
	left := pipeTimeout - time.Duration(o.waited.Load())
	_ = o.file.SetReadDeadline(time.Now().Add(left))
}

// interrupt makes Read return.
func (o *output) interrupt() { _ = o.file.SetReadDeadline(time.Now()) }

// openPipes opens pipes for the standard files of a process. It returns our ends and the
// ends of the process.
func openPipes() (ours, theirs []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, nil, err
		}
		if i == 0 {
			r, w = w, r // the process reads its standard input
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

// reapNow waits for a process to exit and reaps it. The returned function returns its status.
func reapNow(cmd *exec.Cmd) (reap func() error) {
	err := cmd.Wait()
	return func() error { return err }
}
