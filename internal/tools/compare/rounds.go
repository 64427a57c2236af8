// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A result holds the measurements of a workload: one sample per side and round.
type result struct {
	workload workload
	samples  map[string][]sample
}

// measureRounds measures all sides in each round, one after another, so that other load on
// the machine affects all of them.
func measureRounds(ctx context.Context, w workload, rounds int, limit limit) (r result, err error) {
	r = result{w, map[string][]sample{}}
	sessions := map[string]session{}
	defer func() {
		for _, s := range sessions {
			_ = s.close() // its work is done
		}
	}()
	for _, s := range sides {
		if w.only != nil && !slices.Contains(w.only, s.Name) {
			continue
		}
		session, err := w.begin(ctx, s.Name)
		if err != nil {
			return r, fmt.Errorf("%s: %s: %w", w.name, s.Name, err)
		}
		sessions[s.Name] = session
		if limit.Count == 0 {
			err = warm(session, limit)
		}
		if err != nil {
			return r, fmt.Errorf("%s: %s: %w", w.name, s.Name, err)
		}
	}
	for range rounds {
		for _, s := range sides {
			session := sessions[s.Name]
			if session == nil {
				continue
			}
			got, err := session.sample(limit)
			if err != nil {
				return r, fmt.Errorf("%s: %s: %w", w.name, s.Name, err)
			}
			r.samples[s.Name] = append(r.samples[s.Name], got)
		}
	}
	return r, nil
}

// warm runs a load for a while to fill pools and grow stacks.
func warm(s session, l limit) error {
	if loaded, ok := s.(*loading); ok {
		_, err := loaded.sample(limit{For: l.For / 2})
		return err
	}
	return nil
}

// profile profiles psi under a workload.
func profile(ctx context.Context, w workload, path string, l limit) (err error) {
	s, err := w.begin(ctx, ownName)
	if err != nil {
		return err
	}
	defer func(s session) { err = errors.Join(err, s.close()) }(s)
	if q, ok := s.(*quotient); ok {
		s = q.of
	}
	var child *process
	switch s := s.(type) {
	case *hold:
		s.profile = path
		_, err := s.sample(l)
		return err
	case *loading:
		child = s.child
	case *audience:
		child = s.child
	case *withServer:
		if loaded, ok := s.session.(*loading); ok {
			child = loaded.child
		}
	}
	if child == nil {
		return nil
	}
	if err := warm(s, l); err != nil {
		return err
	}
	if _, err := child.do(order{Do: "profile", Path: path}); err != nil {
		return err
	}
	if _, err := s.sample(limit{For: max(4*l.For, 2*time.Second)}); err != nil {
		return err
	}
	_, err = child.do(order{Do: "profile", Path: path})
	return err
}
