// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// results returns a file tree with one checks.json for each pair of a directory and the
// statuses of its checks.
func results(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for pair := range slices.Chunk(pairs, 2) {
		var checks []string
		for i, status := range strings.Fields(pair[1]) {
			checks = append(checks, `{"id":"check`+string(rune('1'+i))+`","status":"`+status+`","errorMessage":"why"}`)
		}
		files[pair[0]+"/checks.json"] = &fstest.MapFile{Data: []byte("[" + strings.Join(checks, ",") + "]")}
	}
	return files
}

func TestReport(t *testing.T) {
	const stamp = "-2026-11-21T03-33-47-066Z"
	tests := map[string]struct {
		files    fstest.MapFS
		want     int
		accepted string
		bad      []string
		last     string
	}{
		"good": {
			files: results("leg/server-server-x"+stamp, "SUCCESS INFO", "leg/auth/y"+stamp, "SUCCESS SKIPPED SUCCESS"),
			want:  2,
			last:  "conformance: 2 scenarios, 3 checks, 0 failures, 0 warnings",
		},
		"failure and warning": {
			files: results("leg/server-server-x"+stamp, "FAILURE WARNING SUCCESS"),
			want:  1,
			bad:   []string{"leg server-x check1: FAILURE: why", "leg server-x check2: WARNING: why"},
			last:  "conformance: 1 scenarios, 3 checks, 1 failures, 1 warnings",
		},
		"nothing checked": {
			files: results("leg/server-x"+stamp, "SKIPPED"),
			want:  1,
			bad:   []string{"leg x any-success: FAILURE: no check has succeeded"},
			last:  "conformance: 1 scenarios, 0 checks, 1 failures, 0 warnings",
		},
		"scenario missing": {
			files: results("leg/server-x"+stamp, "SUCCESS"),
			want:  2,
			bad:   []string{"leg: 1 scenarios were run, want 2"},
			last:  "conformance: 1 scenarios, 1 checks, 0 failures, 0 warnings",
		},
		"accepted": {
			files:    results("leg/server-x"+stamp, "FAILURE SUCCESS", "leg/server-y"+stamp, "SUCCESS"),
			want:     2,
			accepted: "# comment\n\nleg x check1 not served yet\n",
			last:     "conformance: 1 scenarios, 1 checks, 0 failures, 0 warnings; 1 more scenarios are excepted",
		},
		"accepted in part": {
			files:    results("leg/server-x"+stamp, "FAILURE INFO FAILURE"),
			want:     1,
			accepted: "leg x check1 not served yet",
			bad:      []string{"leg x check3: FAILURE: why"},
			last:     "conformance: 1 scenarios, 2 checks, 1 failures, 0 warnings",
		},
		"stale": {
			files:    results("leg/server-x"+stamp, "SUCCESS"),
			want:     1,
			accepted: "leg x* * not served yet",
			bad:      []string{"accepted, but did not happen; take it off the list: leg x* * (not served yet)"},
			last:     "conformance: 1 scenarios, 1 checks, 0 failures, 0 warnings",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := readLeg(test.files, "leg")
			if err != nil {
				t.Fatal(err)
			}
			l.want = test.want
			exceptions, err := parseExceptions(test.accepted)
			if err != nil {
				t.Fatal(err)
			}
			v := judge([]*leg{l}, exceptions)
			var out strings.Builder
			if ok := v.writeTo(&out); ok != (len(test.bad) == 0) {
				t.Errorf("writeTo reports %t", ok)
			}
			if !slices.Equal(v.bad, test.bad) {
				t.Errorf("bad: %q, want %q", v.bad, test.bad)
			}
			if !strings.HasSuffix(out.String(), "\n"+test.last+"\n") {
				t.Errorf("printed:\n%swant it to end with:\n%s", out.String(), test.last)
			}
		})
	}
}

func TestExceptionsNeedReasons(t *testing.T) {
	for _, text := range []string{"leg scenario check", "leg [ check reason"} {
		if _, err := parseExceptions(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestNoResults(t *testing.T) {
	if _, err := readLeg(fstest.MapFS{}, "leg"); err == nil {
		t.Error("a leg without a directory was read")
	}
}
