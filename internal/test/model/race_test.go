// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build race

package model_test

const raceEnabled = true // everything takes several times longer
