// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/mcp"
)

func TestMain(m *testing.M) {
	runChild()
	os.Exit(m.Run())
}

// TestWorkloads runs all workloads with all sides a few times, ignoring the timings. Every
// load checks its answers.
func TestWorkloads(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.name, func(t *testing.T) {
			r, err := measureRounds(t.Context(), w, 1, limit{Count: 4})
			if err != nil {
				t.Fatal(err)
			}
			for name, samples := range r.samples {
				for _, row := range w.rows {
					if _, measured := samples[0][row.measure]; !measured {
						t.Errorf("%s: %s was not measured", name, row.measure)
					}
				}
			}
		})
	}
}

func decode(t *testing.T, data []byte) (a answer) {
	t.Helper()
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
	if a.Error != nil || a.Result.IsError {
		t.Fatalf("an error: %.300s", data)
	}
	return a
}

// wantSum fully decodes and checks an answer that loads only scan.
func wantSum(t *testing.T, data []byte) {
	t.Helper()
	a := decode(t, data)
	if want := fmt.Sprintf(`{"sum":%d}`, firstID+addend); a.ID != firstID || string(a.Result.Structured) != want {
		t.Errorf("the answer is %.300s", data)
	}
}

func TestDispatchers(t *testing.T) {
	const extra = 1000
	for _, s := range sides {
		t.Run(s.Name, func(t *testing.T) {
			dispatch, err := s.New(side.Options{Tools: extra}).Dispatcher(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sum, err := dispatch(modern.add().message(nil, firstID))
			if err != nil {
				t.Fatal(err)
			}
			wantSum(t, sum)
			list, err := dispatch(modern.list().message(nil, firstID))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(decode(t, list).Result.Tools); n != extra+2 {
				t.Errorf("%d tools are listed, want %d", n, extra+2)
			}
		})
	}
}

func TestHTTP(t *testing.T) {
	for _, s := range sides {
		for _, e := range []era{modern, legacy} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s stream %v", s.Name, e.version, stream), func(t *testing.T) {
					p, err := launch(spec{Role: "http", Side: s.Name, Options: side.Options{Modern: e == modern, Stream: stream}})
					if err != nil {
						t.Fatal(err)
					}
					defer p.close()
					testHTTP(t, p.addr, e, stream, s.Name)
				})
			}
		}
	}
}

func testHTTP(t *testing.T, addr string, e era, stream bool, name string) {
	c, err := dialHTTP(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if e == legacy {
		if err := c.open(); err != nil {
			t.Fatal(err)
		}
	}
	data, header, status, err := c.exchange(c.head(http.MethodPost, e.headers(mcp.MethodCallTool, "add", accepting(name, stream))), e.add().message(nil, firstID))
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	wantSum(t, data)
	if got := strings.HasPrefix(header.Get("Content-Type"), acceptSSE); got != stream {
		t.Errorf("the answer is %s", header.Get("Content-Type"))
	}
}
