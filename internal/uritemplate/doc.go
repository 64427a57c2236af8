// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package uritemplate parses RFC 6570 URI templates and uses them in both directions:
// [Template.Expand] writes a URI from values, as the RFC defines, and [Template.Match]
// extracts the values from a URI, which a router of MCP resources needs and the RFC leaves open.
//
// # What matches
//
// A template matches the URIs that its expansion can produce, plus a few equivalent ones
// that people write by hand:
//
//   - Literal text matches itself, byte for byte. [Normal] brings a URI, and [NormalPattern] a
//     template, into the form in which equivalent spellings are the same bytes.
//   - {x} matches one or more characters that are not reserved in URIs, so
//     never a slash. {+x} matches any characters, including none.
//   - {#x}, {.x}, {/x}, {;x}, {?x} and {&x} have their own delimiter, so their
//     variables can be undefined: the whole expression may be absent. In a list
//     such as {/a,b}, the last variables may be missing.
//   - The variables of {;a,b}, {?a,b} and {&a,b} may come in any order. A URI with
//     a name that the expression does not list does not match: otherwise input
//     would be silently ignored, and {?a} and {?b} could not be distinguished.
//     Query values may contain any character of a query except the ampersand; "+"
//     is a plus sign.
//   - {x:3} matches at most three characters. {x*} also matches a list.
//   - A name that appears more than once must have the same value everywhere, or be
//     absent everywhere; a prefix as in {x:1}/{x} must be the prefix of that value.
//
// If a template can match in several ways, as {a}-{b} can for "1-2-3", each variable, from
// left to right, takes the shortest value that lets the rest match.
//
// Values are percent-decoded after matching. A percent sign without two hexadecimal digits,
// or octets that are not UTF-8, do not match.
//
// A decoded value is as the peer wrote it: the value of {x} can contain a slash or be ".."
// although the pattern seems to exclude it, because "%2F" and ".." are both unreserved
// text. Use [os.Root] to open files with such names.
//
// # Cost
//
// Parsing compiles the template into a small automaton. Matching does not backtrack: it
// takes time and memory proportional to the length of the URI times the number of
// expressions. A URI longer than [MaxURI] does not match.
package uritemplate
