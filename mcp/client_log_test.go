// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// The function of a call gets all log messages of the call at or above its level, before
// the call returns.
func TestWithLog(t *testing.T) {
	const all = 50
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for n := range all {
			mcp.ClientLogger(ctx).Debug(fmt.Sprint("detail ", n))
			mcp.ClientLogger(ctx).Warn(fmt.Sprint("warning ", n))
		}
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, test := range []struct {
			level mcp.LoggingLevel
			each  []string
		}{
			{mcp.LoggingLevelError, nil},
			{mcp.LoggingLevelWarning, []string{"warning"}},
			{mcp.LoggingLevelDebug, []string{"detail", "warning"}},
			{mcp.LoggingLevelWarning, []string{"warning"}}, // the session still has the level of the call before
		} {
			var got, want []string
			for n := range all {
				for _, text := range test.each {
					want = append(want, fmt.Sprint(text, " ", n))
				}
			}
			ctx := mcp.WithLog(t.Context(), test.level, func(p *mcp.LoggingMessageParams) { got = append(got, textOfLog(p)) })
			if _, err := c.CallTool(ctx, tool("talk", "")); err != nil || !slices.Equal(got, want) {
				t.Errorf("from the level %s on: got %q, want %q; %v", test.level, got, want, err)
			}
		}
	})
}

// textOfLog returns the message of a record logged through ClientLogger.
func textOfLog(p *mcp.LoggingMessageParams) string {
	data, _ := p.Data.(map[string]any)
	text, _ := data["msg"].(string)
	return text
}

// The function of a call replaces that of the client, and uses the level of the client if
// it has none. A call without a function uses that of the client.
func TestWithLogInsteadOfOption(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct{ Say string }) (string, error) {
		mcp.ClientLogger(ctx).Debug("detail")
		mcp.ClientLogger(ctx).Info(in.Say)
		return "", nil
	}, nil))
	for _, version := range everyVersion() {
		t.Run("version "+version, func(t *testing.T) {
			general := make(chan string, 10)
			c := connect(t, mux, &mcp.ClientOptions{
				Version: version, LogLevel: mcp.LoggingLevelInfo,
				Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { general <- textOfLog(p) },
			})
			var own []string
			ctx := mcp.WithLog(t.Context(), "", func(p *mcp.LoggingMessageParams) { own = append(own, textOfLog(p)) })
			for _, call := range []struct {
				ctx context.Context
				say string
			}{{ctx, "one"}, {mcp.WithLog(ctx, "", nil), "two"}, {t.Context(), "three"}, {ctx, "four"}} {
				if _, err := mcp.Call[string](call.ctx, c, "talk", map[string]string{"Say": call.say}); err != nil {
					t.Error(err)
				}
			}
			if want := []string{"one", "four"}; !slices.Equal(own, want) {
				t.Errorf("the function of the call got %q, want %q", own, want)
			}
			for _, want := range []string{"two", "three"} {
				if got := <-general; got != want {
					t.Errorf("the function of the client got %q, want %q", got, want)
				}
			}
		})
	}
}

// Without a function, a call requests the level of the client.
func TestWithLogUndone(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("level", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return string(mcp.RequestFromContext(ctx).LogLevel()), nil
	}, nil))
	c := connect(t, mux, nil)
	ctx := mcp.WithLog(t.Context(), mcp.LoggingLevelInfo, func(*mcp.LoggingMessageParams) {})
	for want, ctx := range map[string]context.Context{"info": ctx, "": mcp.WithLog(ctx, mcp.LoggingLevelDebug, nil)} {
		if got, err := mcp.Call[string](ctx, c, "level", nil); err != nil || got != want {
			t.Errorf("asked for %q, want %q; %v", got, want, err)
		}
	}
}

// Messages queued for a slow function are also limited in bytes. The newest are kept, and
// the loss is logged.
func TestWithLogThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all, size = 20, 1 << 20
		long := strings.Repeat("x", size)
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			for n := range all {
				mcp.ClientLogger(ctx).Info(fmt.Sprint(n, long))
			}
			return "", nil
		}, nil))
		var log strings.Builder
		c := connect(t, mux, &mcp.ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		got, last, ready := 0, "", make(chan struct{})
		ctx := mcp.WithLog(t.Context(), mcp.LoggingLevelInfo, func(p *mcp.LoggingMessageParams) {
			<-ready
			got++
			last = strings.TrimRight(textOfLog(p), "x")
		})
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, tool("talk", ""))
			done <- err
		}()
		synctest.Wait() // all have arrived
		close(ready)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got >= all || got < 10 || last != fmt.Sprint(all-1) {
			t.Errorf("%d messages of a megabyte were passed on, the last was %q", got, last)
		}
		if !strings.Contains(log.String(), "notifications are dropped") {
			t.Errorf("the log is %q", log.String())
		}
	})
}

// A client sets the log level of a legacy server that declares logging. If the server
// rejects it, the connection continues without.
func TestClientLogLevel(t *testing.T) {
	const refusal = `"error":{"code":-32601,"message":"no such method"}`
	for name, test := range map[string]struct {
		capabilities, answer string
		asked, warned        bool
	}{
		"none":    {`{}`, refusal, false, false},
		"takes":   {`{"logging":{}}`, `"result":{}`, true, false},
		"refuses": {`{"logging":{}}`, refusal, true, true},
		"invalid": {`{"logging":{}}`, `"error":{"code":-32600,"message":"not now"}`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan bool, 8)
			log := new(bytes.Buffer)
			opts := &mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo, Version: "2025-06-18", Logger: slog.New(slog.NewTextHandler(log, nil))}
			c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
				switch method {
				case "initialize":
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"old","version":"1"}}}`, id, "2025-06-18", test.capabilities), true
				case "logging/setLevel":
					asked <- true
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, test.answer), true
				case "ping":
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id), true
				}
				return "", true
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if (len(asked) == 1) != test.asked || strings.Contains(log.String(), "level=WARN") != test.warned {
				t.Errorf("asked %d times; log: %s", len(asked), log)
			}
		})
	}
}

// If a legacy server does not answer logging/setLevel, connecting fails.
func TestClientLogLevelUnanswered(t *testing.T) {
	opts := &mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo, Version: "2025-06-18"}
	_, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
		if method != "initialize" {
			return "", method != "logging/setLevel" // the server ends
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"logging":{}},"serverInfo":{"name":"old","version":"1"}}}`, id, "2025-06-18"), true
	}))
	if err == nil {
		t.Error("there is a connection")
	}
}

// A slog level is sent as the highest MCP level that is not above it. The MCP levels
// without a slog constant lie between and above those of slog, at the same spacing.
func TestLogLevelBounds(t *testing.T) {
	for level, want := range map[slog.Level]mcp.LoggingLevel{
		-8: "debug", slog.LevelDebug: "debug", slog.LevelInfo - 1: "debug", slog.LevelInfo: "info", 1: "info", 2: "notice", slog.LevelWarn - 1: "notice",
		slog.LevelWarn: "warning", slog.LevelError - 1: "warning", slog.LevelError: "error", 11: "error", 12: "critical", 15: "critical", 16: "alert",
		19: "alert", 20: "emergency", 1000: "emergency",
	} {
		for _, version := range bothEras {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
				mcp.ClientLogger(ctx).Log(ctx, level, "x")
				return "", nil
			}, nil))
			got := make(chan mcp.LoggingLevel, 8)
			c := connect(t, mux, &mcp.ClientOptions{Version: version, LogLevel: mcp.LoggingLevelDebug, Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { got <- p.Level }})
			mustCall(t, c, "log", "")
			_ = c.Ping(t.Context())
			if level < slog.LevelDebug {
				continue // it may be omitted
			}
			if l := <-got; l != want {
				t.Errorf("%s: level %d is sent as %s, want %s", version, int(level), l, want)
			}
			if own, ok := want.Level(); !ok || own > level {
				t.Errorf("%s has the level %d", want, own)
			}
		}
	}
	if _, ok := mcp.LoggingLevel("trace").Level(); ok {
		t.Error("there is a level trace")
	}
}

// A client gets messages at or above its level and those of unknown levels. If it has no
// level, it gets whatever the server sends.
func TestLogLevelOfClient(t *testing.T) {
	for wanted, want := range map[mcp.LoggingLevel]string{
		"": "[debug info warning verbose emergency]", "debug": "[debug info warning verbose emergency]",
		"warning": "[warning verbose emergency]", "emergency": "[verbose emergency]",
	} {
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			for _, level := range []mcp.LoggingLevel{"debug", "info", "warning", "verbose", "emergency"} {
				_ = req.Notify(ctx, mcp.NotificationMessage, &mcp.LoggingMessageParams{Level: level, Data: "x"})
			}
			return hello().ServeMCP(ctx, req)
		})
		var got []mcp.LoggingLevel
		last := make(chan bool)
		c := connectTo(t, mcp.InProcess(h), &mcp.ClientOptions{LogLevel: wanted, Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
			if got = append(got, p.Level); p.Level == mcp.LoggingLevelEmergency {
				last <- true
			}
		}})
		<-last // from connecting
		got = nil
		mustCall(t, c, "hello", "")
		if <-last; fmt.Sprint(got) != want {
			t.Errorf("from %q on: got %v, want %s", wanted, got, want)
		}
	}
}

// T63: a logged transport loses nothing. Every message is logged, secrets are not.
func TestLogTransport(t *testing.T) {
	for _, version := range bothEras {
		var log lockedBuffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c := connectTo(t, transport.WithLogging(memory(t, welcoming()), logger), &mcp.ClientOptions{Version: version, Elicit: answering})
		if got, err := mcp.Call[string](t.Context(), c, "greet", map[string]any{}); err != nil || got != "Ada Lovelace" {
			t.Errorf("%s: %q, %v", version, got, err)
		}
		for _, want := range []string{"mcp: sent", "mcp: answered", "tools/call", "duration=", "Ada Lovelace"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q:\n%s", version, want, log.String())
			}
		}
		if version == "2026-07-28" && !strings.Contains(log.String(), "(redacted)") {
			t.Errorf("the state stands in the log:\n%s", log.String())
		}
	}
}

// loggedCall calls a tool that returns its arguments, and returns the log output.
func loggedCall(t *testing.T, arguments string) string {
	t.Helper()
	mux := mcp.NewMux("echo", "v1", nil)
	mux.Tool("echo", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Arguments())}}, StructuredContent: req.Arguments()}, nil
	}))
	var log lockedBuffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := connectTo(t, transport.WithLogging(memory(t, mux), logger), nil)
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(arguments)}); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// Secrets are redacted in any spelling and of any type, in requests, in responses and in
// texts that contain JSON.
func TestFindingS31SecretsInLogs(t *testing.T) {
	for _, member := range []string{
		`"apiKey":"hunter2"`, `"api_key":"hunter2"`, `"X-API-Key":"hunter2"`, `"accessToken":"hunter2"`, `"access-token":"hunter2"`,
		`"ACCESS_TOKEN":"hunter2"`, `"Password":"hunter2"`, `"dbPassword":"hunter2"`, `"token":{"value":"hunter2"}`, `"tokens":["hunter2"]`,
		`"token":["hunter2"]`, `"clientSecret":"hunter2"`, `"aws_secret_access_key":"hunter2"`, `"Set-Cookie":"hunter2"`, `"Proxy-Authorization":"hunter2"`,
		`"private key":"hunter2"`, `"credentials":{"user":"hunter2"}`, `"sessionToken":"hunter2"`, `"jwt":"hunter2"`, `"request_state":"hunter2"`,
		`"pin":"hunter2"`, `"a":[{"b":{"Passwd":"hunter2"}}]`, `"text":"{\"token\":\"hunter2\"}"`, `"text":" [{\"apiKey\":{\"x\":\"hunter2\"}}]\n"`,
		`"text":"{\"text\":\"{\\\"secret\\\":\\\"hunter2\\\"}\"}"`, `"text":"\u007b\"token\":\"hunter2\"}"`,
	} {
		log := loggedCall(t, `{"before":"visible",`+member+`,"after":1}`)
		if strings.Contains(log, "hunter2") || !strings.Contains(log, "(redacted)") || !strings.Contains(log, "visible") || !strings.Contains(log, "after") {
			t.Errorf("%s is logged as\n%s", member, log)
		}
	}
	for _, number := range []string{`"pin":424242`, `"password":424242`, `"token":424242`} {
		if log := loggedCall(t, `{`+number+`}`); strings.Contains(log, "424242") {
			t.Errorf("%s is logged as\n%s", number, log)
		}
	}
}

// Values that only resemble a secret or JSON are logged unchanged.
func TestFindingS31NoSecrets(t *testing.T) {
	for _, member := range []string{
		`"maxTokens":424242`, `"progressToken":"424242"`, `"tokenizer":"424242"`, `"secretary":"424242"`, `"text":"{424242"`, `"text":"[info] 424242"`,
		`"text":"{\"a\":424242}"`, `"keyboard":"424242"`, `"token":null,"x":424242`, `"text":"the password is 424242"`,
	} {
		if log := loggedCall(t, `{`+member+`}`); strings.Contains(log, "(redacted)") || !strings.Contains(log, "424242") {
			t.Errorf("%s is logged as\n%s", member, log)
		}
	}
}
