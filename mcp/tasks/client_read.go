// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A reader decodes the states of one task. A member that cannot be read is left out if the
// call can do without it. It is safe for concurrent use.
type reader struct {
	logger *slog.Logger

	mu     sync.Mutex
	warned map[string]bool // by member
}

func newReader(c *mcp.Conn) *reader {
	return &reader{logger: core.Logger(c), warned: map[string]bool{}}
}

// get requests the state of a task.
func (r *reader) get(ctx context.Context, h mcp.Handler, id string) (*DetailedTask, error) {
	res, err := send(ctx, h, MethodGet, &GetParams{TaskID: id})
	if err != nil {
		return nil, err
	}
	t, err := r.read(res)
	if err == nil && t.Status == "" {
		err = fmt.Errorf("the status is missing: %w", mcp.ErrUnreadable)
	}
	if err != nil {
		return nil, fmt.Errorf("tasks: the server's answer to %s is not a task: %w", MethodGet, err)
	}
	return t, nil
}

// read returns the task in a result. The result is not a GetResult if it does not fit one, or
// was created by middleware.
func (r *reader) read(res mcp.Result) (*DetailedTask, error) {
	if t, ok := res.(*GetResult); ok {
		return &t.DetailedTask, nil
	}
	raw, err := strictjson.Marshal(res)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mcp.ErrUnreadable, err)
	}
	return r.decode(raw)
}

// decode decodes a task. It fails if a member that the status needs cannot be read.
func (r *reader) decode(raw json.RawMessage) (*DetailedTask, error) {
	t := new(DetailedTask)
	if strictjson.Unmarshal(raw, t) == nil {
		return t, nil
	}
	t = new(DetailedTask)
	for _, member := range []struct {
		name     string
		dst      any
		requires Status // the status that needs the member
	}{
		{"status", &t.Status, ""},
		{"taskId", &t.ID, ""},
		{"statusMessage", &t.StatusMessage, ""},
		{"createdAt", (*lenientTime)(&t.CreatedAt), ""},
		{"lastUpdatedAt", (*lenientTime)(&t.LastUpdatedAt), ""},
		{"ttlMs", &t.TTLMs, ""},
		{"pollIntervalMs", &t.PollIntervalMs, ""},
		{"inputRequests", &t.InputRequests, InputRequired},
		{"result", &t.Result, Completed},
		{"error", &t.Error, ""},
	} {
		value := jsonscan.Member(raw, member.name)
		if value == nil {
			continue
		}
		err := strictjson.Unmarshal(value, member.dst)
		switch {
		case err == nil:
		case member.requires != "" && member.requires == t.Status:
			return nil, fmt.Errorf("the member %s: %s: %w", member.name, strictjson.Problem(err), mcp.ErrUnreadable)
		default:
			r.warn(member.name, strictjson.Problem(err))
		}
	}
	return t, nil
}

// warn logs that a member was left out, once for each member of a task.
func (r *reader) warn(member, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned[member] {
		r.warned[member] = true
		r.logger.Warn("tasks: a member of a task that the server sent is ignored", "member", member, "problem", problem)
	}
}

// A lenientTime is a time in any common form of ISO 8601, which the specification names
// without saying which. A time without a zone is in UTC.
type lenientTime time.Time

// UnmarshalJSON implements json.Unmarshaler.
func (t *lenientTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := strictjson.Unmarshal(data, &text); err != nil {
		return err
	}
	day, clock, _ := strings.Cut(isoSpelling.Replace(strings.TrimSpace(text)), "T")
	for _, date := range []string{"2006-01-02", "20060102"} {
		for _, hour := range []string{"T15:04:05", "T150405", "T15:04", "T1504", "T15", "T"} {
			for _, zone := range []string{"Z07:00", "Z0700", "Z07", ""} {
				if parsed, err := time.Parse(date+hour+zone, day+"T"+clock); err == nil {
					*t = lenientTime(parsed)
					return nil
				}
			}
		}
	}
	return fmt.Errorf("%.100q is not a time in ISO 8601, such as 2026-07-28T15:04:05Z", text)
}

// isoSpelling replaces what ISO 8601 and its relatives write in more than one way.
var isoSpelling = strings.NewReplacer("t", "T", "z", "Z", ",", ".", " +", "+", " Z", "Z", " z", "Z", " ", "T")
