// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package uritemplate reads RFC 6570 URI templates and uses them in both
// directions: [Template.Expand] writes a URI from values, as the RFC defines,
// and [Template.Match] reads the values back out of a URI, which is what a
// router of MCP resources needs and the RFC leaves open.
//
// # What matches
//
// A template matches the URIs that its expansion can write, plus the few that
// people write by hand and mean the same:
//
//   - Literal text matches itself, byte for byte. URIs are not normalised.
//   - {x} matches one or more characters that are not reserved in URIs, so
//     never a slash. {+x} matches any characters, and also none.
//   - {#x}, {.x}, {/x}, {;x}, {?x} and {&x} bring their own delimiter, which is
//     why their variables can be undefined: the whole expression may be absent.
//     Of a list such as {/a,b} the last variables may be missing.
//   - The variables of {;a,b}, {?a,b} and {&a,b} may come in any order. A name
//     that the expression does not list is no match: it would be silently
//     ignored input, and {?a} and {?b} could not be told apart. Query values may
//     hold any character of a query except the ampersand; "+" is a plus sign.
//   - {x:3} matches at most three characters. {x*} also matches a list.
//   - A name that stands more than once must have the same value everywhere, or be
//     absent everywhere; a prefix as in {x:1}/{x} must be the prefix of that value.
//
// Where a template can be read in several ways, as {a}-{b} can for "1-2-3",
// every variable takes as little as lets the rest match, from the left.
//
// Values are percent-decoded after matching. A percent sign without two
// hexadecimal digits, or octets that are not UTF-8, are no match.
//
// A decoded value is as the peer wrote it: the value of {x} can hold a slash or
// be ".." although the pattern seems to exclude it, because "%2F" and ".." are
// both unreserved text. Who opens files by such a name needs [os.Root].
//
// # Cost
//
// Parsing compiles the template into a small automaton. Matching takes time and
// memory proportional to the length of the URI times the number of expressions
// (there is no backtracking), a URI longer than [MaxURI] is no match.
package uritemplate
