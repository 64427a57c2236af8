// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command compare measures psi, other implementations of the protocol and a hand-written
// floor on the same workloads, and writes a Markdown table:
//
//	go -C internal/tools/compare run . [-quick] [-rounds n] [-only part] [-profile dir]
//
// Each side runs in a separate process, another instance of this program. See
// docs/performance.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func main() {
	runChild()
	var (
		quick    = flag.Bool("quick", false, "three short rounds")
		rounds   = flag.Int("rounds", 7, "how many rounds")
		each     = flag.Duration("for", 500*time.Millisecond, "how long one side works in a round")
		only     = flag.String("only", "", "measure only what has this in its name")
		profiles = flag.String("profile", "", "write profiles of psi to this directory instead")
	)
	flag.Parse()
	if *quick {
		*rounds, *each = 3, 150*time.Millisecond
	}
	if err := compare(context.Background(), *only, *profiles, *rounds, limit{For: *each}); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// compare measures or profiles the chosen workloads. A missed bar is not an error; the
// table reports it.
func compare(ctx context.Context, only, profiles string, rounds int, limit limit) error {
	chosen := workloads()
	if profiles == "" {
		fmt.Fprintf(os.Stdout, "%s %s/%s, %d processors, %d rounds of %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, limit.For)
		writeHead(os.Stdout)
	}
	failed := 0
	for _, w := range chosen {
		if !strings.Contains(w.name, only) {
			continue
		}
		if profiles != "" {
			path := filepath.Join(profiles, strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(w.name))
			if err := profile(ctx, w, path, limit); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			continue
		}
		r, err := measureRounds(ctx, w, rounds, limit)
		if err != nil {
			return err
		}
		failed += r.write(os.Stdout)
	}
	if profiles == "" {
		fmt.Fprintf(os.Stdout, "\n%d rows fail their bar.\n", failed)
	}
	return nil
}
