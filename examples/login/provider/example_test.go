// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-psi/psi/examples/login/provider"
)

func ExampleNew() {
	idp := provider.New("http://127.0.0.1:8081")
	rec := httptest.NewRecorder()
	idp.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/login", nil))
	fmt.Println(rec.Code)
	// Output: 200
}
