// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// fanOut measures notifying all listeners of one change.
func fanOut() workload {
	return workload{name: "one change to 1,000 listeners", begin: listening, rows: []row{{measure: wall, ratio: 1.3}, {measure: cpu}}}
}

const listeners = 1000

// pause is the time between two changes, which keeps one from affecting the next.
const pause = 150 * time.Millisecond

func listening(ctx context.Context, sideName string) (session, error) {
	p, err := launch(spec{Role: "http", Side: sideName, Options: side.Options{Modern: true}})
	if err != nil {
		return nil, err
	}
	l := &audience{child: p, ctx: ctx}
	for range listeners {
		if err := l.join(); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// audience is a set of listening clients.
type audience struct {
	ctx     context.Context
	child   *process
	conns   []*httpConn
	streams []*bufio.Reader
}

func (l *audience) join() error {
	c, err := dialHTTP(l.ctx, l.child.addr)
	if err != nil {
		return err
	}
	l.conns = append(l.conns, c)
	lines, err := c.events(modern)
	l.streams = append(l.streams, lines)
	return err
}

// sample makes several changes. The wall time is their median, because each takes long
// enough to be disturbed by other load on the machine. The CPU time is per listener.
func (l *audience) sample(limit limit) (sample, error) {
	took := make([]float64, 11)
	if limit.Count > 0 {
		took = took[:1]
	}
	before, err := l.child.use(false)
	if err != nil {
		return nil, err
	}
	for i := range took {
		time.Sleep(pause)
		start := time.Now()
		if err := l.hear(); err != nil {
			return nil, err
		}
		took[i] = time.Since(start).Seconds() * 1e3
	}
	after, err := l.child.use(false)
	return sample{
		wall: median(took),
		cpu:  (after.CPU - before.CPU).Seconds() * 1e6 / float64(len(took)*len(l.streams)),
	}, err
}

// hear makes a change and waits until all listeners are notified.
func (l *audience) hear() error {
	heard := make(chan error, len(l.streams)+1)
	var all sync.WaitGroup
	for _, stream := range l.streams {
		all.Go(func() { heard <- await(stream, "notifications/tools/list_changed") })
	}
	if _, err := l.child.do(order{Do: "change"}); err != nil {
		return err
	}
	for range l.streams {
		select {
		case err := <-heard:
			if err != nil {
				return err
			}
		case <-time.After(20 * time.Second):
			return errors.New("not everyone was told")
		}
	}
	return nil
}

func (l *audience) close() error {
	for _, c := range l.conns {
		_ = c.Close()
	}
	return l.child.close()
}
