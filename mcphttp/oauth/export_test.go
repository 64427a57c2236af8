// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"net/http"
	"net/netip"
)

// Challenge is a parsed challenge.
type Challenge struct {
	Scheme string
	Params map[string]string
}

// ParseChallenges parses challenges for fuzzing.
func ParseChallenges(h http.Header) []Challenge {
	var all []Challenge
	for _, c := range parseChallenges(h) {
		all = append(all, Challenge{c.scheme, c.params})
	}
	return all
}

// Dial returns an error unless a server at one address may cause another address to be
// dialled.
func Dial(server, to netip.Addr, plain bool) error {
	d := &destination{reach: reachFrom(server), plain: plain}
	ctx := context.WithValue(context.Background(), destinationKey{}, d)
	return controlDial(ctx, "tcp", netip.AddrPortFrom(to, 443).String(), nil)
}

// DefaultOptions returns o with defaults filled in.
func DefaultOptions(o *Options) Options { return o.withDefaults() }
