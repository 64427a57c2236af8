// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package appside distinguishes requests made by the page of an app from those of the model.
package appside
