// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate_test

import (
	"fmt"

	"github.com/go-psi/psi/internal/uritemplate"
)

func Example() {
	tmpl, err := uritemplate.Parse("repo://{owner}/{name}/blob/{+path}{?ref,line}")
	if err != nil {
		panic(err)
	}
	values, ok := tmpl.Match("repo://go-psi/psi/blob/docs/read%20me.md?line=7")
	fmt.Println(ok, values.Get("owner"), values.Get("path"), values.Get("line"))

	uri, _ := tmpl.Expand(map[string]string{"owner": "go-psi", "name": "psi", "path": "go.mod", "ref": "main"})
	fmt.Println(uri)
	// Output:
	// true go-psi docs/read me.md 7
	// repo://go-psi/psi/blob/go.mod?ref=main
}

func ExampleCompare() {
	all, _ := uritemplate.Parse("users://{id}/{field}")
	names, _ := uritemplate.Parse("users://{id}/name")
	mine, _ := uritemplate.Parse("users://me/{field}")
	fmt.Println(uritemplate.Compare(names, all))
	fmt.Println(uritemplate.Compare(names, mine))
	// Output:
	// more specific
	// overlaps
}
