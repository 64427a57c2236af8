// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command echo mounts an MCP server in an application made with Echo.
//
//	go run ./echo
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

type greetIn struct {
	Name string `json:"name"`
}

func greet(_ context.Context, in greetIn) (string, error) { return "Hello, " + in.Name + "!", nil }

func newApp() *echo.Echo {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, &mcp.Tool{Description: "Greet somebody."}))

	app := echo.New()
	app.Use(middleware.Recover())
	app.GET("/", func(c *echo.Context) error { return c.String(http.StatusOK, "This is the application.") })
	app.Any("/mcp", echo.WrapHandler(mcphttp.NewHandler(mux, nil))) // GET, POST and DELETE
	return app
}

func main() {
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: newApp(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
