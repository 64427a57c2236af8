// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcphttp"
)

// T26: the event stream format, with every kind of line ending, however it is split.
func TestReadEvents(t *testing.T) {
	type event = mcphttp.Event
	tests := map[string]struct {
		in   string
		want []event
	}{
		"one":                  {"data: a\n\n", []event{{Data: "a", HasData: true}}},
		"CR":                   {"data: a\rid: 1\r\rdata: b\r\r", []event{{Data: "a", ID: "1", HasData: true}, {Data: "b", HasData: true}}},
		"CRLF":                 {"data: a\r\nid: 1\r\n\r\ndata: b\r\n\r\n", []event{{Data: "a", ID: "1", HasData: true}, {Data: "b", HasData: true}}},
		"mixed line ends":      {"data: a\r\ndata: b\rdata: c\n\r\n", []event{{Data: "a\nb\nc", HasData: true}}},
		"several lines":        {"data: a\ndata:b\ndata\ndata:  c\n\n", []event{{Data: "a\nb\n\n c", HasData: true}}},
		"comments":             {": hello\n\n:\n\ndata: a\n: in between\n\n", []event{{Data: "a", HasData: true}}},
		"kinds":                {"event: ping\ndata: 1\n\nevent: message\ndata: 2\n\n", []event{{Kind: "ping", Data: "1", HasData: true}, {Kind: "message", Data: "2", HasData: true}}},
		"priming":              {"id: 7\nretry: 1500\ndata:\n\n", []event{{ID: "7", Retry: 1500 * time.Millisecond, HasData: true}}},
		"only an id":           {"id: 7\n\n", []event{{ID: "7"}}},
		"an id is not kept":    {"id: 7\ndata: a\n\ndata: b\n\n", []event{{ID: "7", Data: "a", HasData: true}, {Data: "b", HasData: true}}},
		"NUL in an id":         {"id: a\x00b\ndata: a\n\n", []event{{Data: "a", HasData: true}}},
		"NUL begins an id":     {"id: \x00b\ndata: a\n\n", []event{{Data: "a", HasData: true}}},
		"not in decimal":       {"retry: 1a\n\nretry: 0x1\n\n", []event{{}, {}}},
		"no delay":             {"retry: soon\n\nretry: -5\n\nretry: +5\n\nretry:\n\n", []event{{}, {}, {}, {}}},
		"an endless delay":     {"retry: 99999999999999999999999\n\n", []event{{Retry: time.Hour}}},
		"unknown fields":       {"foo: bar\nDATA: no\nda: no\ndata: a\n\n", []event{{Data: "a", HasData: true}}},
		"byte order mark":      {"\xEF\xBB\xBFdata: a\n\n", []event{{Data: "a", HasData: true}}},
		"half an order mark":   {"\xEF\xBBdata: a\n\ndata: b\n\n", []event{{Data: "b", HasData: true}}},
		"no blank line at end": {"data: a\n", []event{{Data: "a", HasData: true}}},
		"no line end at end":   {"data: a\n\ndata: b", []event{{Data: "a", HasData: true}, {Data: "b", HasData: true}}},
		"an id cut short":      {"data: a\n\nid: 12", []event{{Data: "a", HasData: true}}},
		"nothing":              {"", nil},
		"only line ends":       {"\n\r\n\r", nil},
		"too long":             {"id: 1\ndata: 0123456789\n\ndata: ok\n\n", []event{{ID: "1", TooLong: true}, {Data: "ok", HasData: true}}},
		"too long in lines":    {"data: 01234\ndata: 56789\n\ndata: ok\n\n", []event{{HasData: true, TooLong: true}, {Data: "ok", HasData: true}}},
		"as long as may be":    {"data: 01234567\n\n", []event{{Data: "01234567", HasData: true}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for cut, in := range map[string]io.Reader{"whole": strings.NewReader(test.in), "bytes": iotest.OneByteReader(strings.NewReader(test.in))} {
				got, err := mcphttp.ReadEvents(in, 8)
				if !errors.Is(err, io.EOF) || !slices.Equal(got, test.want) {
					t.Errorf("%s:\ngot  %+v, %v\nwant %+v", cut, got, err, test.want)
				}
			}
		})
	}
}

// A long line is handled like any other line of an event.
func TestReadLongLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for _, lines := range [][]string{{long, "a"}, {"a", long}, {long, long}} {
		got, _ := mcphttp.ReadEvents(strings.NewReader("data: "+strings.Join(lines, "\ndata: ")+"\n\ndata: b\n\n"), 1<<20)
		if len(got) != 2 || got[0].Data != strings.Join(lines, "\n") || got[1].Data != "b" {
			t.Errorf("read %d events, the first with %d bytes", len(got), len(got[0].Data))
		}
	}
}

// If a stream breaks instead of ending, its incomplete last event is discarded.
func TestReadEventsBroken(t *testing.T) {
	in := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := mcphttp.ReadEvents(in, 1<<10)
	if len(got) != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %+v, %v", got, err)
	}
}

// Events do not depend on how the stream is split into reads, and agree with go-sse.
func FuzzReadEvents(f *testing.F) {
	f.Add("event: a\nid: 1\ndata: x\rdata: y\r\n\r\n: c\n\nretry: 5\ndata\n\n")
	f.Add("data:a\n\n\ndata::b\n\ndata: c\r\rdata")
	f.Add("event: endpoint\ndata: /message?session=a\n\n")
	f.Add("id: 1_2\nretry: 1000\ndata:\n\n: beat\n\nevent: message\nid: 1_3\ndata: " + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}` + "\n\n" +
		"event: message\ndata: " + `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}` + "\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		in += "\n\n"
		got, err := mcphttp.ReadEvents(strings.NewReader(in), 1<<20)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if again, _ := mcphttp.ReadEvents(iotest.OneByteReader(strings.NewReader(in)), 1<<20); !slices.Equal(got, again) {
			t.Errorf("in one piece %+v, in bytes %+v", got, again)
		}
		short, _ := mcphttp.ReadEvents(strings.NewReader(in), 8)
		if again, _ := mcphttp.ReadEvents(iotest.OneByteReader(strings.NewReader(in)), 8); !slices.Equal(short, again) {
			t.Errorf("bounded, in one piece %+v, in bytes %+v", short, again)
		}
		if strings.Contains(in, "\xEF") {
			return // go-sse drops a byte order mark after blank lines as well
		}
		var mine, theirs []sse.Event
		for _, e := range got {
			if e.Data != "" {
				mine = append(mine, sse.Event{Type: e.Kind, Data: e.Data})
			}
		}
		for e, err := range sse.Read(strings.NewReader(in), &sse.ReadConfig{MaxEventSize: 1 << 20}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Data != "" {
				theirs = append(theirs, sse.Event{Type: e.Type, Data: e.Data})
			}
		}
		if !slices.Equal(mine, theirs) {
			t.Errorf("read %+v, go-sse %+v", mine, theirs)
		}
	})
}
