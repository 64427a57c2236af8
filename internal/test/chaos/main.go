// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command chaos runs clients of all revisions against three replicas that share a store,
// and kills processes meanwhile: a replica every few seconds, a node of the store's engine
// less often. Each request goes to the next replica. The command checks that every answer
// is correct, that no session, task or elicited answer is lost, that no call hangs, and
// that all subscribers are notified of changes. Meanwhile guests log in through package
// authserver: it checks that no login is lost that was confirmed, and that no code or refresh
// token gives two sets of tokens.
//
//	go -C internal/test/chaos run . -store nats -for 10m
//
// It prints statistics, and exits with status 1 if anything was wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// A config holds the parameters of a run.
type config struct {
	store         string
	length        time.Duration
	clients       int
	guests        int
	replica, node time.Duration // intervals between kills
	seed          uint64
}

func main() {
	runRole()
	var c config
	flag.StringVar(&c.store, "store", "nats", "the `engine` of the store: nats, a cluster of three, or redis, one server")
	flag.DurationVar(&c.length, "for", 10*time.Minute, "how long there is load")
	flag.IntVar(&c.clients, "clients", 24, "how many clients there are")
	flag.IntVar(&c.guests, "guests", 8, "how many guests there are, who log in")
	flag.DurationVar(&c.replica, "replica", 5*time.Second, "kill a replica at this interval")
	flag.DurationVar(&c.node, "node", 30*time.Second, "kill a node of the engine at this interval")
	flag.Uint64Var(&c.seed, "seed", 1, "what the choices of the clients follow from")
	logs := flag.String("log", os.DevNull, "append what the processes log to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runAndPrint(ctx, c, *logs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runAndPrint(ctx context.Context, c config, logs string) error {
	file, err := os.OpenFile(logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the path is the user's
	if err != nil {
		return err
	}
	defer file.Close()
	dir, err := os.MkdirTemp("", "psi-chaos")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := run(ctx, c, dir, file)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	if r.wrongs > 0 {
		return fmt.Errorf("chaos: %d things were wrong", r.wrongs)
	}
	return nil
}
