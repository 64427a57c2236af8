// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/jsonscan"
)

func collect(walk func(data []byte, yield func(name, value []byte)), data string) (got []string) {
	walk([]byte(data), func(name, value []byte) { got = append(got, fmt.Sprintf("%s=%s", name, value)) })
	return got
}

// Members at the top level of an object are found, even if their values are malformed.
func TestMembers(t *testing.T) {
	for data, want := range map[string][]string{
		``:                                     nil,
		`[1]`:                                  nil,
		`{}`:                                   nil,
		`{"a":1}`:                              {"a=1"},
		" {\n\"a\" : 1 , \"b\":\t{\"id\":7} }": {"a=1", `b={"id":7}`},
		`{"a":"\ud83d","id":5}`:                {`a="\ud83d"`, "id=5"},
		`{"a":"\"}","id":5}`:                   {`a="\"}"`, "id=5"},
		`{"a":[[[{"id":1},]]],"id":5}`:         {`a=[[[{"id":1},]]]`, "id=5"},
		`{"id":5,"a":{"text":"cut of`:          {"id=5"},
		`{"id":5`:                              nil, // may be truncated, for example from 57
		`{"id":5,"a":nonsense,"b":1}`:          {"id=5", "a=nonsense", "b=1"},
		`{"id":5 "a":1}`:                       {`id=5 "a":1`},
		`{"a":}`:                               nil,
		`{"a"`:                                 nil,
	} {
		if got := collect(jsonscan.Members, data); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

func TestElements(t *testing.T) {
	var got []string
	jsonscan.Elements([]byte(`[{"a":"\ud83d"}, [1,2],3`), func(value []byte) bool {
		got = append(got, string(value))
		return len(got) < 9
	})
	if want := []string{`{"a":"\ud83d"}`, "[1,2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The end of an object is enough to find its last top-level members. Strings and nested
// values are not mistaken for them.
func TestLastMembers(t *testing.T) {
	for data, want := range map[string][]string{
		`…long"},"jsonrpc":"2.0","id":5}`:   {"id=5", "jsonrpc=2.0"},
		`…long"], "id" : "a/b" } `:          {`id="a/b"`}, //nolint:gocritic // the white space is what is tested
		`{"id":5}`:                          {"id=5"},
		`…{"id":5}}`:                        nil,
		`…,"id":5]}`:                        nil,
		`…\"id\":5}`:                        nil,
		`…,\"id\":5,\"x\":7"}`:              nil,
		`…,"id":"5\""}`:                     nil,
		`"id":5}`:                           nil, // the byte before the name may be a backslash
		`…,"id":5,"a":true,"b":null,"c":1}`: {"c=1", "b=null", "a=true", "id=5"},
		`}`:                                 nil,
		``:                                  nil,
	} {
		for i, w := range want {
			want[i] = strings.Replace(w, "=2.0", `="2.0"`, 1)
		}
		if got := collect(jsonscan.LastMembers, data); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

// Nothing is read twice: a long malformed message costs no more than reading it.
func TestMembersLinear(t *testing.T) {
	data := bytes.Repeat([]byte("["), 1<<22)
	for _, prefix := range []string{"", `{"a":`, `{"a":"`} {
		collect(jsonscan.Members, prefix+string(data))
		collect(jsonscan.LastMembers, string(data)+`"}`)
	}
}

func FuzzSalvage(f *testing.F) {
	f.Add([]byte(`{"a":"\ud83d","id":5}`))
	f.Add([]byte(`…long"},"jsonrpc":"2.0","id":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := ""
		jsonscan.Members(data, func(name, value []byte) { last = string(name) + "=" + string(value) })
		if jsonscan.Valid(data, 0) != nil || last == "" {
			jsonscan.LastMembers(data, func(_, _ []byte) {})
			return
		}
		first := true
		jsonscan.LastMembers(data, func(name, value []byte) {
			if got := string(name) + "=" + string(value); first && got != last {
				t.Errorf("the last member is %s from the front, %s from the back", last, got)
			}
			first = false
		})
	})
}
