// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What psi new writes is a server that is formatted, vetted and tested, and answers psi.
func TestNew(t *testing.T) {
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums := readFile(t, filepath.Join(checkout, "go.sum"))
	t.Chdir(t.TempDir())
	if got := psi(t, "", "new", "-module", "github.com/Ada/counter", "counter"); got.code != exitOK || !strings.Contains(got.errOut, "cd counter\n") {
		t.Fatalf("exit code %d, wrote %q", got.code, got.errOut)
	}
	t.Chdir("counter")
	// The checkout takes the place of the module, so that nothing is downloaded.
	writeFile(t, "go.mod", readFile(t, "go.mod")+"\nrequire github.com/go-psi/psi v0.0.0\nreplace github.com/go-psi/psi => "+checkout+"\n")
	writeFile(t, "go.sum", sums)
	for _, name := range []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local"} {
		name, value, _ := strings.Cut(name, "=")
		t.Setenv(name, value)
	}
	for _, words := range []string{"gofmt -l .", "go vet .", "go test .", "go build -o server.exe ."} {
		words := strings.Fields(words)
		out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
		if err != nil || words[0] == "gofmt" && len(out) > 0 {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	if got := psi(t, "", "card", "-check", "server.json", "--", "."+string(filepath.Separator)+"server.exe"); got.code != exitOK || got.out != "0 errors, 0 warnings, 0 notes\n" {
		t.Errorf("the card: exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
	got := psi(t, "", "call", "count_words", "text=to be or not to be", "--", "."+string(filepath.Separator)+"server.exe")
	if want := `{"words":6,"different":4}` + "\n"; got.out != want {
		t.Errorf("wrote %q and %q, want %q", got.out, got.errOut, want)
	}
}

// The names of the registry and of the image follow from the path of the module.
func TestNewNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for module, want := range map[string][2]string{
		"github.com/Ada/tools/counter": {"io.github.Ada/counter", "ghcr.io/ada/counter:0.1.0"},
		"tools.example.org/counter":    {"org.example.tools/counter", "ghcr.io/OWNER/counter:0.1.0"},
		"":                             {"com.example/counter", "ghcr.io/OWNER/counter:0.1.0"},
	} {
		dir := filepath.Join(t.TempDir(), "counter")
		if got := psi(t, "", "new", dir, "-module", module); got.code != exitOK {
			t.Errorf("%s: exit code %d, wrote %q", module, got.code, got.errOut)
			continue
		}
		var card struct {
			Name, Version string
			Packages      []struct{ Identifier string }
		}
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "server.json"))), &card); err != nil {
			t.Fatal(err)
		}
		if card.Name != want[0] || card.Packages[0].Identifier != want[1] {
			t.Errorf("%s: the card is %+v, want %q", module, card, want)
		}
		// The check finds what is to be replaced.
		if got := psi(t, "", "card", "-check", filepath.Join(dir, "server.json")); (got.code == exitOK) == strings.Contains(want[1], "OWNER") {
			t.Errorf("%s: exit code %d, wrote %s", module, got.code, got.out)
		}
		docker := readFile(t, filepath.Join(dir, "Dockerfile"))
		if !strings.Contains(docker, `LABEL io.modelcontextprotocol.server.name="`+want[0]+`"`) {
			t.Errorf("%s: the image is made by\n%s", module, docker)
		}
		if readme := readFile(t, filepath.Join(dir, "README.md")); strings.Contains(readme, "OWNER") == strings.HasPrefix(module, "github.com/") {
			t.Errorf("%s: the README is\n%s", module, readme)
		}
	}
}

// An existing server is not overwritten, and names that something would refuse are rejected.
func TestNewMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := psi(t, "", "new", "empty"); got.code != exitOK {
		t.Errorf("an empty directory: exit code %d, wrote %q", got.code, got.errOut)
	}
	t.Run("the current directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "counter")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		got := psi(t, "", "new", ".")
		if got.code != exitOK || !strings.HasPrefix(got.errOut, "counter is in .") || strings.Contains(got.errOut, "cd ") {
			t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
		}
		if mod := readFile(t, "go.mod"); !strings.HasPrefix(mod, "module example.com/counter\n") {
			t.Errorf("go.mod is %q", mod)
		}
	})
	writeFile(t, "file", "")
	for args, want := range map[string]string{
		"":                      "want a name",
		"a b":                   "want a name",
		"empty":                 "empty exists, and is not empty",
		"file":                  "file",
		"Counter":               `"Counter" is not a name`,
		"a--b":                  `"a--b" is not a name`,
		"..":                    `".." is not a name`,
		"nul":                   `"nul" is not a name`,
		"-module=x.org/aux/y c": `-module "x.org/aux/y" is not the path`,
		"-module=x.org./y c":    `-module "x.org./y" is not the path`,
		"-module=a/../b c":      `-module "a/../b" is not the path`,
		"-module=https://x/y c": "is not the path of a module",
	} {
		if got := psi(t, "", append([]string{"new"}, strings.Fields(args)...)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q, want %s", args, got.code, got.errOut, want)
		}
	}
}
