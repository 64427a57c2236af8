// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps/host"
	"github.com/go-psi/psi/mcp/openapi"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/middleware"
)

const module = "github.com/go-psi/psi/"

// constructed lists the types that must be created by a constructor. All methods of other
// values of these types panic.
var constructed = []reflect.Type{
	of[auth.DPoP](), of[auth.Introspection](), of[auth.JWT](), of[authtest.ProofKey](), of[host.Host](), of[jsonschema.Schema](),
	of[mcp.Client](), of[mcp.Conn](), of[mcp.Mux](), of[mcp.Session](), of[mcp.Subscription](), of[mcp.Upstream](),
	of[mcphttp.Handler](), of[mcphttp.Router](), of[mcphttp.SSEHandler](), of[middleware.Cache](), of[middleware.SharedBucket](),
	of[middleware.TokenBucket](), of[authserver.Server](), of[oauth.FileStore](), of[oauth.SharedStore](), of[oauth.Transport](), of[openapi.API](), of[recording.Recorder](),
	of[recording.Replay](), of[skills.Catalog](), of[skills.Loaded](), of[store.Memory](), of[tasks.Handle](), of[tasks.Manager](),
}

// TestZeroValues calls every method of every exported type on its zero value and, for types
// with a constructor, on a nil pointer. A method that cannot work must return an error or
// panic with a sentence that names the constructor.
func TestZeroValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, typ := range exportedTypes {
		zero := reflect.New(typ)
		values := map[string]reflect.Value{typ.String(): zero}
		isConstructed := slices.Contains(constructed, typ)
		if isConstructed {
			values["nil "+typ.String()] = reflect.Zero(zero.Type())
		}
		for name, v := range values {
			refusing := callMethods(t, name, v)
			switch {
			case isConstructed && refusing < v.NumMethod():
				t.Errorf("%s: only %d of %d methods say that a constructor must make it", name, refusing, v.NumMethod())
			case !isConstructed && refusing > 0:
				t.Errorf("%s is missing in the constructed types", name)
			}
		}
	}
}

// TestZeroArguments calls every exported function with zero values, and the methods of its
// results.
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

// isOurs reports whether v has a type of psi.
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

// callMethods calls all methods of v. It returns how many of them panic because v was not
// made by a constructor.
func callMethods(t *testing.T, name string, v reflect.Value) (refusing int) {
	for i := range v.NumMethod() {
		method := name + "." + v.Type().Method(i).Name
		call(t, method, v.Method(i), zeros)
		_, panicked := call(t, method, v.Method(i), nonzeros)
		if strings.Contains(panicked, "must be made by") || strings.Contains(panicked, "the Session is nil") {
			refusing++
		}
	}
	return refusing
}

// call calls a function. It fails the test if the function does not return, or panics with
// anything but a sentence. It returns the results, and the text of a panic.
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
		if end, ok := reflect.TypeAssert[func()](v); ok && end != nil {
			end() // for example, a function that unlocks
		}
	}
}

// isSentence reports whether a panic is meant for programmers: it is not a runtime error,
// and its text starts with the package.
func isSentence(v any) bool {
	if _, isRuntime := v.(runtime.Error); isRuntime {
		return false
	}
	text := fmt.Sprint(v)
	for _, pkg := range []string{"apps", "auth", "authserver", "authtest", "chi", "debug", "host", "jsonschema", "mcp", "mcphttp", "mcpstdio", "mcptest", "middleware", "oauth", "openapi", "recording", "skills", "store", "tasks", "transport"} {
		if strings.HasPrefix(text, pkg+": ") || strings.HasPrefix(text, pkg+".") {
			return !strings.Contains(text, "%!")
		}
	}
	return false
}
