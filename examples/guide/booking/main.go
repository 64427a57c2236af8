// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command booking is the server of the guide whose tool asks the user.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

type bookIn struct {
	Restaurant string `json:"restaurant"`
}

// details is the form that the user fills in.
type details struct {
	Guests int    `json:"guests" jsonschema:"minimum=1,maximum=12"`
	Table  string `json:"table" jsonschema:"enum=inside,enum=terrace"`
}

type confirmation struct {
	Sure bool `json:"sure" jsonschema:"title=Book it"`
}

func book(ctx context.Context, in bookIn) (string, error) {
	want, err := mcp.Elicit[details](ctx, "details", "A table at "+in.Restaurant+" for how many?")
	if errors.Is(err, mcp.ErrDeclined) {
		return "The user does not want to book.", nil
	}
	if err != nil {
		return "", err
	}
	price, err := mcp.Once(ctx, "price", func(ctx context.Context) (int, error) { return fetchPrice(ctx, in.Restaurant) })
	if err != nil {
		return "", err
	}
	final, err := mcp.Elicit[confirmation](ctx, "confirm", fmt.Sprintf("Book for %d, with a deposit of %d euros?", want.Guests, price))
	if err != nil {
		return "", err
	}
	if !final.Sure {
		return "The user does not want to book.", nil
	}
	return fmt.Sprintf("Booked for %d, %s, with a deposit of %d euros.", want.Guests, want.Table, price), nil
}

// fetchPrice stands for a request that is slow, and can return something else the next time.
func fetchPrice(_ context.Context, restaurant string) (int, error) { return 10 + len(restaurant), nil }

func newMux() *mcp.Mux {
	mux := mcp.NewMux("booking", "v1.0.0", nil)
	mux.Tool("book", mcp.ToolFunc(book, &mcp.Tool{Description: "Book a table. Asks the user before."}))
	return mux
}

func main() {
	if err := mcpstdio.Serve(context.Background(), newMux(), nil); err != nil {
		log.Fatal(err)
	}
}
