// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// The loop that everybody writes first is right: each use of a key is its own question, and
// its own step.
func TestFindingV1V2KeysInLoops(t *testing.T) {
	var charged []string
	mux := mcp.NewMux("shop", "v1", quiet())
	mux.Tool("charge", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		var done []string
		for _, order := range []string{"A", "B", "C"} {
			sure, err := mcp.Elicit[yes](ctx, "confirm", "Charge the order?")
			if err != nil {
				return "", err
			}
			if !sure.OK {
				continue
			}
			step, err := mcp.Once(ctx, "charge", func(context.Context) (string, error) {
				charged = append(charged, order)
				return "charged " + order, nil
			})
			if err != nil {
				return "", err
			}
			done = append(done, step)
		}
		return strings.Join(done, ", "), nil
	}, nil))
	asked := 0
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked++
		return mcptest.Accept(yes{asked != 2}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		asked, charged = 0, nil
		if got := mustCall(t, c, "charge", ""); got != "charged A, charged C" || asked != 3 || !slices.Equal(charged, []string{"A", "C"}) {
			t.Errorf("got %q after %d questions, charged %q", got, asked, charged)
		}
	})
}

// Several questions of one Ask may share a key. On the wire, they are numbered.
func TestKeysOfOneAsk(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("delete", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		sure := make([]yes, 3)
		var questions []mcp.Question
		for i := range sure {
			questions = append(questions, mcp.ElicitQuestion("delete", fmt.Sprintf("Delete %d?", min(i, 1)), &sure[i]))
		}
		err := mcp.Ask(ctx, questions...)
		return fmt.Sprint(sure), err
	}, nil))
	res, err := mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "delete"}))
	asked, ok := res.(*mcp.InputRequired)
	if err != nil || !ok || len(asked.InputRequests) != 3 || asked.InputRequests["delete#3"].Method == "" {
		t.Errorf("got %+v, %v", res, err)
	}
	user(map[string]any{"Delete 0?": yes{true}, "Delete 1?": yes{false}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "delete", ""); got != "[{true} {false} {false}]" {
			t.Errorf("got %q", got)
		}
	})
}

// Keys inside a step are its own. When the handler runs again, the step does not, and the
// next use of the same key outside still has the same number.
func TestFindingNumberedOnceInOnce(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	made := 0
	id := func(context.Context) (string, error) { made++; return fmt.Sprint("id-", made), nil }
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		order, err := mcp.Once(ctx, "order", func(ctx context.Context) (string, error) { return mcp.Once(ctx, "id", id) })
		if err != nil {
			return "", err
		}
		invoice, err := mcp.Once(ctx, "id", id)
		if err != nil {
			return "", err
		}
		if _, err := mcp.Elicit[yes](ctx, "sure", "Sure?"); err != nil {
			return "", err
		}
		return order + " " + invoice, nil
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		made = 0
		if got := mustCall(t, c, "order", ""); got != "id-1 id-2" || made != 2 {
			t.Errorf("got %q, made %d", got, made)
		}
	})
}

// A part of a step that has succeeded is remembered although the step itself failed.
func TestFailedStepKeepsItsSteps(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	reserved, attempts := 0, 0
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		order := func(ctx context.Context) (int, error) {
			n, err := mcp.Once(ctx, "reserve", func(context.Context) (int, error) { reserved++; return reserved, nil })
			if attempts++; err == nil && attempts == 1 {
				err = fmt.Errorf("the line is busy")
			}
			return n, err
		}
		n, err := mcp.Once(ctx, "order", order)
		if err != nil {
			n, err = mcp.Once(ctx, "order", order)
		}
		return fmt.Sprint(n), err
	}, nil))
	res, err := callTool(t, mux, "order", "")
	if err != nil || textOf(res) != "1" || attempts != 2 || reserved != 1 {
		t.Errorf("got %q, %v; reserved %d times in %d attempts", textOf(res), err, reserved, attempts)
	}
}

func TestWrongKeys(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	one := func(context.Context) (int, error) { return 1, nil }
	for name, fn := range map[string]func(ctx context.Context) error{
		`the key "a/b" must not contain # or /`: func(ctx context.Context) error { _, err := mcp.Once(ctx, "a/b", one); return err },
		`the key "a#2" must not contain # or /`: func(ctx context.Context) error { _, err := mcp.Elicit[yes](ctx, "a#2", "?"); return err },
		`the step "order#2" of tools/call "t" asks a question`: func(ctx context.Context) error {
			_, _ = mcp.Once(ctx, "order", one)
			_, err := mcp.Once(ctx, "order", func(ctx context.Context) (yes, error) { return mcp.Elicit[yes](ctx, "k", "?") })
			return err
		},
		"the handler asks 17 questions at once": func(ctx context.Context) (err error) {
			for i := 0; i < 1000 && (err == nil || strings.Contains(err.Error(), "waiting")); i++ {
				_, err = mcp.Elicit[yes](ctx, "k", fmt.Sprint(i)) // whose error it should have returned
			}
			return err
		},
	} {
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return "", fn(ctx) }, nil))
		req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "t"})
		if _, err := mux.ServeMCP(t.Context(), req); err == nil || mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
		mux.RemoveTool("t")
	}
}
