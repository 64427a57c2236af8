// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	// unpinned matches commands that install whatever version a registry has today.
	unpinned = regexp.MustCompile(`\bnpm (i|install|exec|update|add)\b|\bnpx\b|@latest\b|\bgo (install|run|get) \S*@`)
	// exact matches a version that is a single one.
	exact = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	// pinnedCI matches an installation from a lock file that runs no script of a package.
	pinnedCI = regexp.MustCompile(`--ignore-scripts\b`)
)

// The scripts, and with them CI, install nothing but what lock files name, and run no scripts
// of what they install.
func TestScriptsInstallWhatIsPinned(t *testing.T) {
	for _, finding := range findUnpinned(t, os.DirFS(root(t))) {
		t.Error(finding)
	}
}

func TestFindUnpinned(t *testing.T) {
	got := findUnpinned(t, fstest.MapFS{
		".ci/run":             {Data: []byte("set -e\n# npm install is not used\nnpm install x\nnpm ci --ignore-scripts\n")},
		"a/run.sh":            {Data: []byte("npx y\nnpm ci\ngo run example.com/z@v1\ngo run ./z\n")},
		"a/package.json":      {Data: []byte(`{"dependencies":{"b":"^1.0.0","c":"1.0.0"},"optionalDependencies":{"d":"latest"}}`)},
		"b/package.json":      {Data: []byte(`{"devDependencies":{"c":"1.0.0-alpha.1"}}`)},
		"b/package-lock.json": {},
		"b/node_modules/c.sh": {Data: []byte("npx c")},
	})
	want := []string{
		".ci/run:3: npm install x", "a/package.json: there is no package-lock.json", `a/package.json: "b" is "^1.0.0"`, `a/package.json: "d" is "latest"`,
		"a/run.sh:1: npx y", "a/run.sh:2: npm ci", "a/run.sh:3: go run example.com/z@v1",
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func findUnpinned(t *testing.T, files fs.FS) (found []string) {
	t.Helper()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return skipUnless(err)
		case name == ".ci/run" || path.Ext(name) == ".sh":
			found = append(found, unpinnedCommands(t, files, name)...)
		case d.Name() == "package.json":
			found = append(found, unpinnedPackages(t, files, name)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// skipUnless returns err, or skips the directory if there is none.
func skipUnless(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

func unpinnedCommands(t *testing.T, files fs.FS, name string) (found []string) {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		isCI := strings.Contains(line, "npm ci") && !pinnedCI.MatchString(line)
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && (isCI || unpinned.MatchString(line)) {
			found = append(found, finding{name, i + 1, line}.String())
		}
	}
	return found
}

func unpinnedPackages(t *testing.T, files fs.FS, name string) (found []string) {
	t.Helper()
	var manifest struct{ Dependencies, DevDependencies, OptionalDependencies map[string]string }
	text, err := fs.ReadFile(files, name)
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if _, err := fs.Stat(files, path.Join(path.Dir(name), "package-lock.json")); err != nil {
		found = append(found, name+": there is no package-lock.json")
	}
	for _, all := range []map[string]string{manifest.Dependencies, manifest.DevDependencies, manifest.OptionalDependencies} {
		for dependency, version := range all {
			if !exact.MatchString(version) {
				found = append(found, name+`: "`+dependency+`" is "`+version+`"`)
			}
		}
	}
	return found
}
