// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package appside tells the requests that the page of an app makes from those of the model.
package appside
