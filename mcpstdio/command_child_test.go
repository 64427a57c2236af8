// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// behaviourVariable is the environment variable that selects the program TestBehaviour runs.
const behaviourVariable = "MCPSTDIO_TEST_BEHAVIOUR"

// forever is longer than any test. It bounds the programs of a test that failed.
const forever = time.Minute

// behaviours are the programs that tests start. They return their exit status.
var behaviours = map[string]func() int{
	"serve": serve,
	"noisy": func() int { // T2
		os.Stderr.WriteString(strings.Repeat("some noise\n", 1<<20/11) + "the end of the noise\n")
		return serve()
	},
	"banner": func() int { // T5
		os.Stdout.WriteString("\ufeffWelcome!\r\n\r\n[INFO] ready\r\n[1]\r\n{'a': 1}\r\n{\r\n\xff\xfe\r\n")
		return serveTo(os.Stdin, crlfWriter{os.Stdout})
	},
	"chatty": func() int { // X14
		os.Stdout.WriteString(strings.Repeat("not a message\n", 500))
		return serveTo(os.Stdin, os.Stdout)
	},
	"stubborn": func() int { // T7
		signal.Ignore(syscall.SIGTERM)
		startHelper("sleeper")
		serve()
		<-time.After(forever)
		return 0
	},
	"sleeper": func() int {
		signal.Ignore(syscall.SIGTERM)
		<-time.After(forever)
		return 0
	},
	"obedient": func() int { // ignores the end of its input, but not SIGTERM
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		serve()
		<-terminated
		return 0
	},
	"parent": func() int { // leaves a process behind that holds its pipes
		startHelper("sleeper")
		return serve()
	},
	"deaf": func() int { // reads nothing
		os.Stdout.WriteString(ready)
		<-time.After(forever)
		return 0
	},
	"mute": func() int { // closes its output
		fmt.Fprintln(os.Stderr, "silence falls")
		os.Stdout.Close()
		io.Copy(io.Discard, os.Stdin)
		return 0
	},
	"dying": func() int { // explains why it exits when its tool is called
		mux := mcp.NewMux("dying", "v1", nil)
		mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			fmt.Fprintln(os.Stderr, "panic: cannot connect with postgres://admin:hunter2@10.0.0.5/prod")
			os.Exit(2)
			return "", nil
		}, nil))
		_ = mcpstdio.Serve(context.Background(), mux, nil)
		return 0
	},
	"waiting": func() int { // answers nothing
		fmt.Fprintln(os.Stderr, "loading the model\n99 GB")
		io.Copy(io.Discard, os.Stdin)
		return 0
	},
	"halting": halting,
	"old": func() int { // T61: exits when it gets an unknown method
		return serveUnless("server/discover", func() { os.Exit(4) })
	},
	"silent": func() int { // T61: does not answer unknown methods
		return serveUnless("server/discover", func() {})
	},
}

// ready is a notification that a program sends when it has started.
const ready = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"ready"}}` + "\n"

// TestBehaviour is not a test: it runs the programs that tests start.
func TestBehaviour(t *testing.T) {
	name := os.Getenv(behaviourVariable)
	if name == "" {
		t.Skip("not started by a test")
	}
	behaviour := behaviours[name]
	if behaviour == nil {
		behaviour = systemBehaviours[name]
	}
	os.Exit(behaviour())
}

// program returns the command that runs a program.
func program(name string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, "-test.run=^TestBehaviour$")
	cmd.Env = append(os.Environ(), behaviourVariable+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// startHelper starts a process that inherits the standard files, and file 3 if there is one.
func startHelper(name string) {
	cmd := program(name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if witness := os.NewFile(3, "witness"); hasWitness() {
		cmd.ExtraFiles = []*os.File{witness}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

func hasWitness() bool { return os.Getenv("MCPSTDIO_TEST_WITNESS") != "" }

// witnessed gives a command a file 3. Once no process has the file open, the channel dead
// receives what was written to it.
func witnessed(t *testing.T, cmd *exec.Cmd) (dead <-chan string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(cmd.Env, "MCPSTDIO_TEST_WITNESS=1")
	last := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r)
		last <- string(text)
	}()
	return last
}

func serve() int { return serveTo(os.Stdin, nil) }

func serveTo(in io.Reader, out io.Writer) int {
	if err := mcpstdio.Serve(context.Background(), tools(), &mcpstdio.Options{In: in, Out: out}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	return 0
}

// serveUnless calls refuse for lines that contain word, and serves from the first other line
// on.
func serveUnless(word string, refuse func()) int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0
		}
		if !strings.Contains(line, word) {
			return serveTo(io.MultiReader(strings.NewReader(line), in), nil)
		}
		refuse()
	}
}

// tools returns the handler that the programs serve.
func tools() *mcp.Mux {
	mux := server(nil)
	mux.Tool("pid", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return fmt.Sprint(os.Getpid()), nil }, nil))
	mux.Tool("environment", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return strings.Join(os.Environ(), "\n"), nil }, nil))
	mux.Tool("long", mcp.ToolFunc(func(_ context.Context, in struct {
		Bytes int `json:"bytes"`
	}) (string, error) {
		return strings.Repeat("x", in.Bytes), nil
	}, nil))
	mux.Tool("exit", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		fmt.Fprintln(os.Stderr, "goodbye,\ncruel world")
		os.Exit(7)
		return "", nil
	}, nil))
	return mux
}

// crlfWriter ends lines as Windows does, and adds an empty line.
type crlfWriter struct{ w io.Writer }

func (w crlfWriter) Write(b []byte) (int, error) {
	_, err := w.w.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n\r\n")))
	return len(b), err
}

// notes is a text that is safe for concurrent writes.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func (n *notes) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// quietly returns options that log nothing and have a short WaitDelay.
func quietly() *mcpstdio.CommandOptions {
	return &mcpstdio.CommandOptions{Logger: slog.New(slog.DiscardHandler), WaitDelay: 500 * time.Millisecond}
}

// reasonOfEnd waits until a connection has ended, and returns the reason.
func reasonOfEnd(conn *mcp.Conn) error {
	<-conn.Done()
	return conn.Err()
}

// client returns a client for programs. Its timeout is long, because a machine may be slow
// to start them.
func client() *mcp.Client {
	return mcp.NewClient("test", "v1", &mcp.ClientOptions{ConnectTimeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)})
}

// connect connects to a program.
func connect(t *testing.T, cmd *exec.Cmd, opts *mcpstdio.CommandOptions) *mcp.Conn {
	t.Helper()
	conn, err := client().Connect(t.Context(), mcpstdio.NewCommand(cmd, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

type echo struct {
	Text string `json:"text"`
}

// echoes checks that a connection works.
func echoes(t *testing.T, conn *mcp.Conn, text string) {
	t.Helper()
	if got, err := mcp.Call[string](t.Context(), conn, "echo", echo{text}); err != nil || got != text {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(text))
	}
}

// soon receives from a channel, and fails the test if nothing arrives within a reasonable
// time.
func soon[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nothing happens", what)
	}
	return v
}

// unstartable returns a command whose Start fails.
func unstartable() *exec.Cmd {
	cmd := program("serve")
	cmd.Dir = "/no/such/directory"
	return cmd
}

// A command does not get the secrets of its client's environment unless Env contains them.
func TestFindingS20Environment(t *testing.T) {
	t.Setenv(behaviourVariable, "serve")
	t.Setenv("API_KEY", "hunter2")
	t.Setenv("WANTED", "yes")
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "USERPROFILE"
	}
	t.Setenv(home, "/home/somebody")
	t.Setenv("TERM", "() { :;}; a function of a shell")
	env := func(cmd *exec.Cmd) []string {
		cmd.Path, cmd.Args = program("serve").Path, program("serve").Args
		conn := connect(t, cmd, quietly())
		text, err := mcp.Call[string](t.Context(), conn, "environment", nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(text, "\n")
	}
	allowed := mcpstdio.Environ(behaviourVariable)
	for name, test := range map[string]struct {
		env  []string
		want []string // of the variables below
	}{
		"some": {allowed, []string{home, "PATH"}},
		"more": {mcpstdio.Environ(behaviourVariable, "WANTED", "UNSET_VARIABLE"), []string{home, "PATH", "WANTED"}},
		"all":  {os.Environ(), []string{"API_KEY", home, "PATH", "TERM", "WANTED"}},
	} {
		got := env(&exec.Cmd{Env: test.env})
		for _, variable := range []string{"API_KEY", home, "PATH", "TERM", "UNSET_VARIABLE", "WANTED"} {
			has := slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, variable+"=") })
			if want := slices.Contains(test.want, variable); has != want {
				t.Errorf("%s: %s is passed on: %t, want %t", name, variable, has, want)
			}
		}
	}
}

// A nil Env does not pass the whole environment: the program is not told what to do, and is
// not a server.
func TestFindingS20NilEnvironment(t *testing.T) {
	t.Setenv(behaviourVariable, "serve")
	cmd := program("serve")
	cmd.Env = nil
	conn, err := client().Connect(t.Context(), mcpstdio.NewCommand(cmd, quietly()))
	if err == nil {
		conn.Close()
		t.Error("the whole environment was passed on")
	}
}

// The standard error in an ExitError can neither control a terminal nor start a line of a
// log.
func TestFindingS32ExitError(t *testing.T) {
	stderr := "fatal\r\x1b[2J\x1b]0;title\a \u009b31m \u202egnp.exe\nERROR all is lost\n\tat main"
	err := &mcpstdio.ExitError{Err: errors.New("exit status 1"), Stderr: stderr}
	want := "mcpstdio: the server ended: exit status 1; its last words:\n" +
		"\tfatal\\r\\x1b[2J\\x1b]0;title\\a \\u009b31m \\u202egnp.exe\n\tERROR all is lost\n\t\tat main"
	if got := err.Error(); got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
	if err.Stderr != stderr {
		t.Error("the field is changed")
	}
}
