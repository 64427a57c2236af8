// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command skills serves a directory of skills. It can also load a skill from a server, as a
// host does when its model needs it.
//
//	go run ./examples/skills -http 127.0.0.1:8080
//	go run ./examples/skills -load refunds http://127.0.0.1:8080
//
// With -dir, it serves your own directory, and announces changes in it.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/mcphttp"
)

//go:embed skills
var embedded embed.FS

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	dir := flag.String("dir", "", "serve the skills of this `directory`")
	name := flag.String("load", "", "load the skill with this `name` from the server whose URL follows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *addr, *dir, *name, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, dir, name, url string) error {
	if name != "" {
		return load(ctx, os.Stdout, url, name)
	}
	directory, err := fs.Sub(embedded, "skills")
	if dir != "" {
		directory, err = openDir(dir)
	}
	if err != nil {
		return err
	}
	mux, catalog, err := newServer(directory)
	if err != nil {
		return err
	}
	go catalog.Watch(ctx, 2*time.Second)
	return serve(ctx, addr, mux)
}

// openDir opens a directory. Symbolic links cannot lead out of it.
func openDir(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return root.FS(), nil
}

func newServer(directory fs.FS) (*mcp.Mux, *skills.Catalog, error) {
	catalog, err := skills.New(directory, nil)
	if err != nil {
		return nil, nil, err
	}
	mux := mcp.NewMux("shop", "v1.0.0", &mcp.MuxOptions{Instructions: "The skills tell how this shop treats its customers."})
	catalog.Register(mux)
	return mux, catalog, nil
}

func serve(ctx context.Context, addr string, mux *mcp.Mux) error {
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
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

// load loads a skill and writes all its files, each verified. A host would first ask its
// user, give the model only the instructions, and read the other files when the model needs
// them.
func load(ctx context.Context, out io.Writer, url, name string) error {
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport(url, nil))
	if err != nil {
		return err
	}
	defer conn.Close()
	for skill, err := range skills.List(ctx, conn) {
		if err != nil {
			return err
		}
		if skill.Frontmatter.Name() != name {
			continue
		}
		loaded, err := skills.Load(ctx, conn, skill, nil)
		if err != nil {
			return err
		}
		return write(out, loaded.FS(ctx))
	}
	return fmt.Errorf("%s has no skill %q", url, name)
}

func write(out io.Writer, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "== %s\n%s\n", name, data)
		return err
	})
}
