// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// Bench measures each operation of a store sequentially, with values of 300 bytes.
func Bench(b *testing.B, s store.Store) {
	b.Helper()
	data := make([]byte, 300)
	for _, bench := range append(valueBenches(s, data), otherBenches(s, data)...) {
		b.Run(bench.name, func(b *testing.B) {
			step := bench.prepare(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must(b, step(b.Context(), i))
			}
		})
	}
}

type bench struct {
	name    string
	prepare func(b *testing.B) (step func(ctx context.Context, i int) error)
}

func valueBenches(s store.Store, data []byte) []bench {
	return []bench{
		{"Get", func(b *testing.B) func(context.Context, int) error {
			key := newKey()
			_, err := s.Put(b.Context(), key, data, 0, lasting)
			must(b, err)
			return func(ctx context.Context, _ int) error { _, _, err := s.Get(ctx, key); return err }
		}},
		{"Put", func(*testing.B) func(context.Context, int) error {
			key := newKey()
			return func(ctx context.Context, i int) error {
				_, err := s.Put(ctx, key+strconv.Itoa(i), data, 0, time.Minute)
				return err
			}
		}},
		{"Update", func(*testing.B) func(context.Context, int) error {
			key := newKey()
			return func(ctx context.Context, _ int) error {
				return store.Update(ctx, s, key, lasting, func([]byte) ([]byte, error) { return data, nil })
			}
		}},
		{"PutTake", func(*testing.B) func(context.Context, int) error {
			key := newKey()
			return func(ctx context.Context, i int) error {
				_, err := s.Put(ctx, key+strconv.Itoa(i), data, 0, time.Minute)
				if err == nil {
					_, err = s.Take(ctx, key+strconv.Itoa(i))
				}
				return err
			}
		}},
	}
}

func otherBenches(s store.Store, data []byte) []bench {
	return []bench{
		{"PublishNext", func(b *testing.B) func(context.Context, int) error {
			topic := newKey()
			sub, err := s.Subscribe(b.Context(), topic)
			must(b, err)
			b.Cleanup(func() { _ = sub.Close() })
			return func(ctx context.Context, _ int) error {
				if err := s.Publish(ctx, topic, data[:40]); err != nil {
					return err
				}
				_, err := sub.Next(ctx)
				return err
			}
		}},
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
