// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

const module = "github.com/go-psi/psi/"

// TestZeroValues calls every method of every exported type on its zero value. A method that
// cannot work must panic with a sentence that names the constructor, or return an error. If
// one does, a nil pointer must do the same.
func TestZeroValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, typ := range exportedTypes {
		zero := reflect.New(typ)
		if callMethods(t, typ.String(), zero) {
			callMethods(t, "nil "+typ.String(), reflect.Zero(zero.Type()))
		}
	}
}

// TestZeroArguments calls every exported function with zero values, and the methods of what
// it returns.
func TestZeroArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, fn := range exportedFuncs {
		v := reflect.ValueOf(fn)
		for _, args := range []arguments{zeros, nonzeros} {
			results, _ := call(t, nameOf(v), v, args)
			for _, r := range results {
				if r.Kind() == reflect.Interface {
					r = r.Elem()
				}
				if isOurs(r) {
					callMethods(t, nameOf(v)+"()", r)
				}
			}
		}
	}
}

// nameOf returns the name of an exported function, such as mcphttp/auth.NewJWT.
func nameOf(fn reflect.Value) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(runtime.FuncForPC(fn.Pointer()).Name(), module), "[")
	return name
}

// isOurs reports whether psi wrote the methods of v.
func isOurs(v reflect.Value) bool {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	typ := v.Type()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return strings.HasPrefix(typ.PkgPath(), module)
}

// callMethods calls all methods of v. It reports whether one says that a constructor must
// make v.
func callMethods(t *testing.T, name string, v reflect.Value) (mustBeMade bool) {
	for i := range v.NumMethod() {
		for _, args := range []arguments{zeros, nonzeros} {
			_, panicked := call(t, name+"."+v.Type().Method(i).Name, v.Method(i), args)
			mustBeMade = mustBeMade || strings.Contains(panicked, "must be made by")
		}
	}
	return mustBeMade
}

// call calls a function. It fails the test if that does not return, or panics with anything
// but a sentence. It returns the results, and the text of a panic.
func call(t *testing.T, name string, fn reflect.Value, args arguments) (results []reflect.Value, panicked string) {
	in, ok := args.of(t, fn.Type())
	if !ok {
		return nil, ""
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if panicked = fmt.Sprint(v); !isSentence(v) {
				t.Errorf("%s panics with %v\n%s", name, v, debug.Stack())
			}
		}()
		results = fn.Call(in)
	}()
	select {
	case <-returned:
		checkResults(t, name, results)
		return results, panicked
	case <-time.After(20 * time.Second):
		t.Errorf("%s does not return", name)
		return nil, ""
	}
}

func checkResults(t *testing.T, name string, results []reflect.Value) {
	for _, v := range results {
		if v.Kind() == reflect.Chan && v.IsNil() {
			t.Errorf("%s returns a nil channel, which blocks forever", name)
		}
		if err, ok := reflect.TypeAssert[error](v); ok && strings.Contains(err.Error(), "nil pointer dereference") {
			t.Errorf("%s returns %q", name, err)
		}
	}
}

// isSentence reports whether a panic was written for its reader: it is not one of the
// runtime, and its text begins with the package.
func isSentence(v any) bool {
	if _, isRuntime := v.(runtime.Error); isRuntime {
		return false
	}
	text := fmt.Sprint(v)
	for _, pkg := range []string{"apps", "auth", "authtest", "chi", "debug", "host", "jsonschema", "mcp", "mcphttp", "mcpstdio", "mcptest", "middleware", "oauth", "recording", "skills", "store", "tasks", "transport"} {
		if strings.HasPrefix(text, pkg+": ") || strings.HasPrefix(text, pkg+".") {
			return !strings.Contains(text, "%!")
		}
	}
	return false
}
