// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptrace_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/go-psi/psi/mcp/mcptrace"
)

// Traces compose like those of httptrace: for each field, the function of the newer trace
// is called first, and then that of the older one.
func TestComposition(t *testing.T) {
	fields := reflect.TypeFor[mcptrace.ClientTrace]()
	var calls []string
	newTrace := func(name string) *mcptrace.ClientTrace {
		v := reflect.ValueOf(new(mcptrace.ClientTrace))
		for i := range fields.NumField() {
			call := func([]reflect.Value) []reflect.Value {
				calls = append(calls, name+" "+fields.Field(i).Name)
				return nil
			}
			v.Elem().Field(i).Set(reflect.MakeFunc(fields.Field(i).Type, call))
		}
		return v.Interface().(*mcptrace.ClientTrace)
	}
	ctx := mcptrace.WithClientTrace(t.Context(), newTrace("old"))
	ctx = mcptrace.WithClientTrace(ctx, &mcptrace.ClientTrace{})
	ctx = mcptrace.WithClientTrace(ctx, newTrace("new"))
	if same := mcptrace.WithClientTrace(ctx, nil); same != ctx {
		t.Error("a nil trace makes another context")
	}
	both := reflect.ValueOf(mcptrace.ClientTraceFromContext(ctx)).Elem()
	for i := range fields.NumField() {
		calls = nil
		both.Field(i).Call([]reflect.Value{reflect.Zero(fields.Field(i).Type.In(0))})
		if want := []string{"new " + fields.Field(i).Name, "old " + fields.Field(i).Name}; !slices.Equal(calls, want) {
			t.Errorf("got %q, want %q", calls, want)
		}
	}
	if mcptrace.ClientTraceFromContext(t.Context()) != nil {
		t.Error("a context without a trace has one")
	}
}
