// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// Several processes that act for one user share tokens. Only one process at a time uses the
// refresh token.
func ExampleNewSharedStore() {
	shared := store.NewMemory(nil) // in production, an adapter to an engine
	key := []byte("a secret of all processes, 16 bytes or more")
	ctx, server := context.Background(), oauth.StoreKey{Issuer: "https://login.example", Resource: "https://mcp.example"}

	one, two := oauth.NewSharedStore(shared, key), oauth.NewSharedStore(shared, key)
	_, unlock, err := one.Lock(ctx, server)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(one.Save(ctx, server, []byte("token")))
	unlock()
	token, err := two.Load(ctx, server)
	fmt.Printf("%s %v\n", token, err)
	// Output:
	// <nil>
	// token <nil>
}
