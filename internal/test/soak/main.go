// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command soak subjects a server to the load of many clients, including misbehaving ones,
// for a limited time, and checks every answer. It then checks that nothing is leaked: no
// goroutine, no file descriptor, no memory, no session. The server may consist of several
// replicas that share a store, behind a balancer that moves sessions between them and cuts
// connections; each replica is replaced during the run.
//
//	go run ./internal/test/soak -for 2m -sessions 2000 -replicas 2
//
// It prints statistics, and exits with status 1 if anything was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"time"
)

// writeProfile writes a heap profile, unless path is "".
func writeProfile(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path) //nolint:gosec // the path is the user's
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

func main() {
	var c config
	flag.DurationVar(&c.length, "for", 2*time.Minute, "how long there is load")
	flag.IntVar(&c.sessions, "sessions", 2000, "how many clients there are at once")
	flag.IntVar(&c.replicas, "replicas", 2, "how many replicas of the server there are behind a balancer; 1 is a server without one")
	flag.DurationVar(&c.think, "think", time.Second, "how long a client waits between two calls, on average")
	flag.DurationVar(&c.write, "write", 3*time.Second, "how long a client may read nothing before it is cut off")
	flag.DurationVar(&c.settle, "settle", 150*time.Second, "how long what clients left behind may take to go")
	flag.Uint64Var(&c.seed, "seed", 1, "what the choices of the clients follow from")
	profile := flag.String("heap", "", "the file to write a profile of the memory to that is used in the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r := soak(ctx, c)
	stop()
	if err := writeProfile(*profile); err != nil {
		r.wrongf("the profile was not written: %v", err)
	}
	r.print(os.Stdout)
	if len(r.problems) > 0 {
		fmt.Fprintln(os.Stderr, "soak: something was wrong")
		os.Exit(1)
	}
}
