// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

func Example() {
	ctx := context.Background()
	var s store.Store = store.NewMemory(nil)

	// A value that is used once, such as the state of a login.
	if _, err := s.Put(ctx, "login.4711", []byte("alice"), 0, time.Minute); err != nil {
		panic(err)
	}
	user, err := s.Take(ctx, "login.4711")
	fmt.Printf("%s %v\n", user, err)
	_, err = s.Take(ctx, "login.4711")
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// alice <nil>
	// true
}

func ExampleUpdate() {
	ctx := context.Background()
	s := store.NewMemory(nil)
	for range 3 {
		err := store.Update(ctx, s, "calls", time.Minute, func(old []byte) ([]byte, error) {
			return append(old, '|'), nil
		})
		if err != nil {
			panic(err)
		}
	}
	tally, _, _ := s.Get(ctx, "calls")
	fmt.Printf("%s\n", tally)
	// Output: |||
}

func ExampleTopics() {
	ctx := context.Background()
	var topics store.Topics = store.NewMemory(nil)
	changes, err := topics.Subscribe(ctx, "list_changed")
	if err != nil {
		panic(err)
	}
	defer changes.Close()

	_ = topics.Publish(ctx, "list_changed", []byte("tools"))
	message, err := changes.Next(ctx)
	fmt.Printf("%s %v\n", message, err)
	// Output: tools <nil>
}
