// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// whoami returns the ID of the session, which must survive the loss of a replica.
func whoami(ctx context.Context, _ struct{}) (string, error) {
	if s := mcp.SessionFromContext(ctx); s != nil {
		return s.ID(), nil
	}
	return "", nil
}

type orderIn struct {
	Dish string `json:"dish"`
}

type drink struct {
	Drink string `json:"drink"`
}

// order asks a question. The answer may arrive at any replica.
func order(ctx context.Context, in orderIn) (string, error) {
	d, err := mcp.Elicit[drink](ctx, "drink", "What do you drink with "+in.Dish+"?")
	if err != nil {
		return "", err
	}
	return in.Dish + " and " + d.Drink, nil
}

type renderIn struct {
	Scenes int `json:"scenes"`
}

// render takes half a second for each scene. A completed scene stays completed, whatever
// happens to the replica.
func render(ctx context.Context, in renderIn) (string, error) {
	var film []string
	for i := range in.Scenes {
		scene, err := mcp.Once(ctx, fmt.Sprint("scene ", i), func(ctx context.Context) (string, error) {
			select {
			case <-time.After(500 * time.Millisecond):
				return strconv.Itoa(i), nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		})
		if err != nil {
			return "", err
		}
		film = append(film, scene)
		mcp.Progress(ctx, float64(i+1), float64(in.Scenes), "scene "+scene)
	}
	return strings.Join(film, " "), nil
}

const (
	newsURI = "news://latest"
	newsKey = "cluster/news"
)

type newsIn struct {
	Number int `json:"number"`
}

// publish stores the latest news. The bus of the mux notifies the subscribers at all
// replicas. Publishing the same news again changes nothing, so a client may repeat a call
// whose response was lost.
func (s *service) publish(ctx context.Context, in newsIn) (int, error) {
	err := store.Update(ctx, s.shared, newsKey, time.Hour, func(old []byte) ([]byte, error) {
		last, _ := strconv.Atoi(string(old)) // 0 at first
		return strconv.AppendInt(nil, int64(max(last, in.Number)), 10), nil
	})
	if err != nil {
		return 0, err
	}
	s.mux.ResourceUpdated(newsURI)
	return in.Number, nil
}

func (s *service) readNews(ctx context.Context, _ struct{}) (string, error) {
	news, _, err := s.shared.Get(ctx, newsKey)
	if errors.Is(err, store.ErrNotFound) {
		return "0", nil
	}
	return string(news), err
}
