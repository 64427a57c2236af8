// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command cluster shows a server that outlives its machines. It starts three replicas of an
// MCP server, three nodes of NATS JetStream in which they keep what they share, a balancer
// that sends every request to another replica, and a client; each is a process of its own,
// but the balancer. Kill what you like: the session, the questions, the subscription and the
// tasks of the client go on.
//
//	go run . -chaos 5s
//
// A digit kills a replica with SIGKILL or starts it again, a letter does the same to a node.
// Another client can use the URL that is shown, for example this one:
//
//	go run . -client http://127.0.0.1:8080/mcp
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	runRole()
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	chaos := flag.Duration("chaos", 0, "kill a process at this interval, and start it again after half of it; 0 means never")
	logs := flag.String("log", os.DevNull, "append what the processes log to this `file`")
	url := flag.String("client", "", "start no cluster, but be a client of the server at this `URL`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *url != "" {
		err = follow(ctx, *url)
	} else {
		err = demonstrate(ctx, *addr, *logs, *chaos)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// follow is a client that prints how it goes.
func follow(ctx context.Context, url string) error {
	c := newClient(url)
	go c.run(ctx)
	return show(ctx, nil, func(p painter, b *bytes.Buffer) { p.writeRows(b, c.status()) })
}

// demonstrate runs a cluster and shows it.
func demonstrate(ctx context.Context, addr, logs string, chaos time.Duration) error {
	dir, err := os.MkdirTemp("", "psi-cluster")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.OpenFile(logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the path is the user's
	if err != nil {
		return err
	}
	defer file.Close()
	c, err := newCluster(ctx, addr, dir, file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- c.run(ctx, addr)
	}()
	if chaos > 0 {
		go c.chaos(ctx, chaos)
	}
	press := func(key byte) {
		switch i := int(key); {
		case key == 'q' || key == 3: // control-C, of a terminal in raw mode
			cancel()
		case i >= '1' && i < '1'+size:
			c.toggle(c.replicas[i-'1'])
		case i >= 'a' && i < 'a'+size:
			c.toggle(c.nodes[i-'a'])
		}
	}
	err = show(ctx, press, func(p painter, b *bytes.Buffer) { p.write(b, c) })
	cancel()
	return errors.Join(err, <-ended)
}

// show shows what draw writes until ctx is done: in a terminal a picture that changes, and
// elsewhere a new one every five seconds. It calls press for every key, unless that is nil.
func show(ctx context.Context, press func(key byte), draw func(painter, *bytes.Buffer)) error {
	screen := int(os.Stdout.Fd())
	if !term.IsTerminal(screen) {
		for ctx.Err() == nil {
			var b bytes.Buffer
			draw(false, &b)
			fmt.Println(b.String())
			sleep(ctx, 5*time.Second)
		}
		return nil
	}
	if keyboard := int(os.Stdin.Fd()); press != nil && term.IsTerminal(keyboard) {
		before, err := term.MakeRaw(keyboard)
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(keyboard, before) }()
		go func() {
			for key := make([]byte, 1); ; {
				if _, err := os.Stdin.Read(key); err != nil {
					return
				}
				press(key[0])
			}
		}()
	}
	fmt.Print("\x1b[?1049h\x1b[?25l")       // another screen, without a cursor
	defer fmt.Print("\x1b[?25h\x1b[?1049l") // and back
	for ctx.Err() == nil {
		var b bytes.Buffer
		draw(true, &b)
		fmt.Printf("\x1b[H%s\x1b[J", bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\x1b[K\r\n")))
		sleep(ctx, 200*time.Millisecond)
	}
	return nil
}
