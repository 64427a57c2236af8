// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// arguments selects the arguments of a call.
type arguments bool

const (
	zeros    arguments = false // except where nil is never valid, as for a context
	nonzeros arguments = true
)

// of returns the arguments for a function, without variadic ones. It reports false if the
// function has a *testing.T or *testing.B parameter.
func (a arguments) of(t *testing.T, fn reflect.Type) (in []reflect.Value, ok bool) {
	for i := range fn.NumIn() {
		switch {
		case fn.In(i) == reflect.TypeFor[*testing.T](), fn.In(i) == reflect.TypeFor[*testing.B]():
			return nil, false
		case !fn.IsVariadic() || i < fn.NumIn()-1:
			in = append(in, a.value(t, fn.In(i)))
		}
	}
	return in, true
}

func (a arguments) value(t *testing.T, typ reflect.Type) reflect.Value {
	if v := necessary(t, typ); v.IsValid() {
		return v
	}
	if a == zeros {
		return reflect.Zero(typ)
	}
	switch typ {
	case reflect.TypeFor[mcp.Handler]():
		return reflect.ValueOf(says[none](nil))
	case reflect.TypeFor[*template.Template]():
		return reflect.ValueOf(template.New("x"))
	case reflect.TypeFor[http.Handler]():
		return reflect.ValueOf(http.NotFoundHandler())
	case reflect.TypeFor[[]byte](), reflect.TypeFor[json.RawMessage]():
		return reflect.ValueOf([]byte(`{"x":1}`)).Convert(typ)
	case reflect.TypeFor[*os.Root]():
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		return reflect.ValueOf(root)
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return reflect.New(typ.Elem())
	case reflect.String:
		return reflect.ValueOf("x").Convert(typ)
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return reflect.ValueOf(1).Convert(typ)
	case reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) []reflect.Value {
			var out []reflect.Value
			for result := range typ.Outs() {
				out = append(out, reflect.Zero(result))
			}
			return out
		})
	}
	return reflect.Zero(typ)
}

// necessary returns an argument for types whose nil no function has to accept, and an
// invalid value for other types.
func necessary(t *testing.T, typ reflect.Type) reflect.Value {
	switch typ {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case reflect.TypeFor[testing.TB]():
		return reflect.ValueOf(fatalTB{t})
	case reflect.TypeFor[http.ResponseWriter]():
		return reflect.ValueOf(httptest.NewRecorder())
	case reflect.TypeFor[*http.Request]():
		ctx, leave := context.WithCancel(t.Context())
		leave() // so that streams end immediately
		return reflect.ValueOf(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/", http.NoBody))
	case reflect.TypeFor[http.Header]():
		return reflect.ValueOf(http.Header{})
	case reflect.TypeFor[*mcp.Request]():
		req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(req)
	}
	return reflect.Value{}
}

// A fatalTB panics where a test would end, and continues after errors.
type fatalTB struct{ testing.TB }

func (fatalTB) Error(...any)                      {}
func (fatalTB) Errorf(string, ...any)             {}
func (fatalTB) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (fatalTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
