// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/openapi"
)

// catalog returns a document with operations whose bodies and responses share nested schemas,
// in five levels.
func catalog(operations, components int) []byte {
	const levels = 5
	perLevel := components / levels
	all := func(n int, format func(i int) string) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = format(i)
		}
		return strings.Join(texts, ",")
	}
	content := func(i int) string {
		return fmt.Sprintf(`{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/S%d"}}}}`, i%components)
	}
	return []byte(`{"openapi":"3.1.0","paths":{` + all(operations, func(i int) string {
		return fmt.Sprintf(`"/r%d/{id}":{"post":{"summary":"Operation %[1]d","requestBody":%s,"responses":{"200":%s}}}`, i, content(i), content(7*i))
	}) + `},"components":{"schemas":{` + all(components, func(i int) string {
		nested := ""
		for j := range 3 {
			if next := i - i%perLevel + perLevel + (i*3+j*17)%perLevel; next < components {
				nested += fmt.Sprintf(`,"n%d":{"$ref":"#/components/schemas/S%d"}`, j, next)
			}
		}
		return fmt.Sprintf(`"S%d":{"type":"object","description":"Schema %[1]d of the document","required":["name"],"properties":{
			"name":{"type":"string","description":"Its name","maxLength":100},"count":{"type":"integer","minimum":0},
			"kind":{"type":"string","enum":["a","b","c"]},"tags":{"type":"array","items":{"type":"string"}}%s}}`, i, nested)
	}) + `}}}`)
}

// BenchmarkNew measures the time until the tools of a large document are served, and the memory
// that they take before they are called.
func BenchmarkNew(b *testing.B) {
	doc := catalog(2000, 500)
	b.ReportAllocs()
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	var api *openapi.API
	for b.Loop() {
		var err error
		if api, err = openapi.New(doc, &openapi.Options{Handler: echo}); err != nil || api.Omitted() != nil {
			b.Fatal(err, api.Omitted())
		}
		if err := api.Register(quietMux()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((heap()-before)/1e6, "MB-live")
	runtime.KeepAlive(api)
}
