// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"io"
	"time"
)

// stdioLoad makes calls over standard input and output, several of them in flight.
type stdioLoad struct {
	in       io.Writer
	out      *bufio.Reader
	inFlight int
	request  template
	buffer   []byte
}

func newStdioLoad(p *process, inFlight int) *stdioLoad {
	return &stdioLoad{in: p.in, out: bufio.NewReaderSize(p.out, 64<<10), inFlight: inFlight, request: modern.add()}
}

// run keeps inFlight calls in flight. All messages that can be sent are sent in one write,
// as a busy reader of a pipe would see them.
func (l *stdioLoad) run(limit limit) (int, error) {
	start := time.Now()
	sent, done := 0, 0
	for {
		l.buffer = l.buffer[:0]
		for sent-done < l.inFlight && !limit.reached(sent, start) {
			l.buffer = append(l.request.message(l.buffer, firstID+sent), '\n')
			sent++
		}
		if _, err := l.in.Write(l.buffer); err != nil {
			return done, err
		}
		if sent == done {
			return done, nil
		}
		for {
			if err := l.receive(); err != nil {
				return done, err
			}
			done++
			if l.out.Buffered() == 0 || done == sent {
				break
			}
		}
	}
}

// receive reads one answer, to any of the calls.
func (l *stdioLoad) receive() error {
	line, err := l.out.ReadSlice('\n')
	if err != nil {
		return noEOF(err)
	}
	return checkAdd(line, number(line, idKey))
}

func (l *stdioLoad) close() error { return nil }
