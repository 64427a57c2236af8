// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gin mounts an MCP server in an application made with Gin.
//
//	go run ./gin
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

type greetIn struct {
	Name string `json:"name"`
}

func greet(_ context.Context, in greetIn) (string, error) { return "Hello, " + in.Name + "!", nil }

func newApp() *gin.Engine {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, &mcp.Tool{Description: "Greet somebody."}))

	app := gin.New()
	app.Use(gin.Recovery())
	app.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "This is the application.") })
	app.Any("/mcp", gin.WrapH(mcphttp.NewHandler(mux, nil))) // GET, POST and DELETE
	return app
}

// main does not use gin.Engine.Run, whose server has no timeouts.
func main() {
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: newApp(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
