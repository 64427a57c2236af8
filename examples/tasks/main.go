// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command tasks is a render farm. Its tool takes about a minute, asks a question in the
// middle, and is a task for clients that support tasks.
//
//	go run ./examples/tasks -http 127.0.0.1:8080
//
// Its store is in memory, so its tasks are lost when it exits. With a shared store, a
// second farm continues the tasks of the first; the test of this program demonstrates that
// with two farms in one process.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *addr)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done, and then hands over the tasks.
func run(ctx context.Context, addr string) error {
	f := &farm{render: renderSlowly}
	mux, manager := f.newServer(store.NewMemory(nil), nil)
	endpoint := mcphttp.NewHandler(mux, nil)
	server := &http.Server{Addr: addr, Handler: endpoint, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	log.Printf("serving at http://%s", addr)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(manager.Shutdown(ctx), endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

// renderSlowly stands in for the work. It ends early if the task is cancelled or handed
// over.
func renderSlowly(ctx context.Context, _ string) error {
	select {
	case <-time.After(10 * time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A farm renders films.
type farm struct {
	render func(ctx context.Context, shot string) error
}

// newServer returns a server of the farm. Servers with the same store share their tasks.
func (f *farm) newServer(shared store.Store, opts *tasks.Options) (*mcp.Mux, *tasks.Manager) {
	o := tasks.Options{}
	if opts != nil {
		o = *opts
	}
	o.Store = shared
	mux := mcp.NewMux("farm", "v1.0.0", nil)
	manager := tasks.New("farm", &o)
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(f.renderFilm, &mcp.Tool{Description: "Renders a film."}))
	return mux, manager
}

type film struct {
	Title string `json:"title"`
}

type format struct {
	Codec string `json:"codec" jsonschema:"enum=av1,enum=h265"`
}

// renderFilm starts from the beginning whenever it runs: again after the question has been
// answered, and in another process if this one is gone. Once preserves completed work.
func (f *farm) renderFilm(ctx context.Context, in film) (string, error) {
	shots := []string{"title", "storm", "chase", "kiss", "credits"}
	for i, shot := range shots {
		_, err := mcp.Once(ctx, shot, func(ctx context.Context) (bool, error) { return true, f.render(ctx, shot) })
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(len(shots)), "rendered the "+shot)
		if shot != "storm" {
			continue
		}
		if _, err := mcp.Elicit[format](ctx, "codec", "The storm looks good. Which codec shall it be?"); err != nil {
			return "", err
		}
	}
	return in.Title + " is ready", nil
}
