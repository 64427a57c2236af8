// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command cluster demonstrates a server that survives the failure of its machines. It
// starts three replicas of an MCP server, three NATS JetStream nodes that store their
// shared state, a balancer that sends each request to a different replica, and a client.
// Each is a separate process, except for the balancer. Kill any of them: the client's
// session, questions, subscription and tasks continue.
//
//	go run . -chaos 5s
//
// A digit kills a replica with SIGKILL or starts it again; a letter does the same with a
// node. Another client can use the URL that is shown, for example this one:
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

// follow runs a client and prints its status.
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
		case key == 'q' || key == 3: // control-C, for a terminal in raw mode
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

// show shows the output of draw until ctx is done. In a terminal, it updates the screen;
// otherwise, it prints the output every five seconds. If press is not nil, show calls it
// for every key.
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
	fmt.Print("\x1b[?1049h\x1b[?25l")       // alternate screen, without a cursor
	defer fmt.Print("\x1b[?25h\x1b[?1049l") // and back
	for ctx.Err() == nil {
		var b bytes.Buffer
		draw(true, &b)
		fmt.Printf("\x1b[H%s\x1b[J", bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\x1b[K\r\n")))
		sleep(ctx, 200*time.Millisecond)
	}
	return nil
}
