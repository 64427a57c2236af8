// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build goexperiment.jsonv2 && !go1.27

package jsonschema_test

var dashedTypes []goldenType
