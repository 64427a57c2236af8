// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command mutate tests tests: it changes one thing of a program at a time, a mutant,
// and reports those that no test notices.
//
//	bash internal/mutate.sh [-n 100] [-seed 1] [-workers 2] [-timeout 2m] [-tests ./mcpstdio] ./mcp ./mcphttp
//
// Mutants are drawn at random from all of the packages named; the same seed draws the
// same mutants of the same source. The source is never touched: a mutant is compiled by
// the -overlay flag of go test. The tests of the packages named, and of those of -tests,
// are run if they execute the changed line, those of its own package first, until one
// fails.
//
// A mutant that survives is a question: is a test missing, is the code not needed, or
// does the change make no difference?
package main
