// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
)

// A host needs two origins. Here they are ports chosen by the operating system.
func ExampleNew() {
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}})
	conn, err := client.Connect(context.Background(), mcp.InProcess(server()))
	if err != nil {
		log.Fatal(err)
	}
	sandbox := httptest.NewServer(host.Sandbox())
	h, err := host.New(conn, sandbox.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(h) // open site.URL in a browser
	resp, err := site.Client().Get(site.URL)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status)
	resp.Body.Close()
	site.Close()
	sandbox.Close()
	conn.Close()
	// Output: 200 OK
}
