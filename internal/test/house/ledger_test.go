// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ledgers lists the pages whose tables give the evidence for each requirement, and the
// pattern of the first cell of their rows.
var ledgers = map[string]*regexp.Regexp{
	"docs/evidence/conformance.md": regexp.MustCompile(`^[A-Z]+-\d\d(…\d\d)?$`),
	"docs/evidence/traps.md":       regexp.MustCompile(`^T\d+b?$`),
	"docs/evidence/advisories.md":  regexp.MustCompile(`^(CVE-\d{4}-\d{4,6}|GHSA(-[0-9a-z]{4}){3}|N\d+)$`),
	"docs/evidence/findings.md":    regexp.MustCompile(`^([SWIUMLXRVKYZ]|RM|C-[HML])\d+$`),
}

// TestLedgers checks that the tests named by the pages exist, and that every row has a test
// or a reason.
func TestLedgers(t *testing.T) {
	tree, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(tree)
	for page, id := range ledgers {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(page)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, finding := range checkLedger(page, string(text), id, tests) {
			t.Error(finding)
		}
	}
}

// prose lists the pages that name tests outside of ledgers.
var prose = []string{"SECURITY.md", "CHANGELOG.md", "docs/decisions.md"}

// namedTest matches a code span that looks like the name of a test.
var namedTest = regexp.MustCompile("`([a-z0-9/]+\\.(?:Test|Fuzz|Example)[A-Z]\\w*)`")

// TestNamedTestsExist checks that the tests named by the pages of prose exist.
func TestNamedTestsExist(t *testing.T) {
	tree, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf(tree)
	for _, page := range prose {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(page)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range namedTest.FindAllStringSubmatch(string(text), -1) {
			if !tests[name[1]] {
				t.Errorf("%s: there is no test %s", page, name[1])
			}
		}
	}
}

// TestAdvisoriesAreListed checks that every test named after an advisory is listed on the
// page, in the row of that advisory.
func TestAdvisoriesAreListed(t *testing.T) {
	tree, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "evidence", "advisories.md"))
	if err != nil {
		t.Fatal(err)
	}
	for test := range testsOf(tree) {
		_, advisory, ok := strings.Cut(test, ".TestAdvisory")
		if !ok {
			continue
		}
		row := "| " // any row, if the advisory has no number
		if strings.Contains(advisory, "_") {
			row += strings.ReplaceAll(advisory, "_", "-") + " |"
		}
		if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, row) && strings.Contains(line, "`"+test+"`")
		}) {
			t.Errorf("docs/evidence/advisories.md has no row %q with the test %s", row, test)
		}
	}
}

// TestCheckLedger checks that checkLedger reports every wrong row.
func TestCheckLedger(t *testing.T) {
	tests := map[string]bool{"mcp.TestIDs": true, "mcphttp/auth.FuzzKeySet": true}
	const text = "# A page\n\nWith `mcp.TestProse` in its text.\n\n" +
		"| id | level | what | shown by |\n|---|---|---|---|\n" +
		"| A-01 | MUST | fine | `mcp.TestIDs` |\n" +
		"| A-02 | MUST | fine | `mcp.TestIDs/modern`, `mcphttp/auth.FuzzKeySet` |\n" +
		"| A-03…05 | MUST | fine | not built yet: the whole of it |\n" +
		"| A-06 | MUST | fine | `conformance:auth/2025-03-26-x` |\n" +
		"| A-07 | MUST | fine | `mcp.TestIDs`; **open**: a detail of it |\n" +
		"| A-08 | MUST | WRONG | `mcp.TestGone` |\n" +
		"| A-09 | MUST | WRONG | |\n" +
		"| A-10 | MUST | WRONG | not ours |\n" +
		"| A-11 | MUST | WRONG | because |\n" +
		"| A-01 | MUST | WRONG | `mcp.TestIDs` |\n" +
		"| B1 | MUST | WRONG | `mcp.TestIDs` |\n" +
		"| A-12 | MUST | WRONG `mcp.TestIDs` |\n" +
		"| A-13 | MUST | WRONG | `conformance:Not a scenario` |\n" +
		"| A-14 | MUST | WRONG | `mcp.IDs` |\n"
	var want []string
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "WRONG") {
			want = append(want, fmt.Sprintf("page:%d", i+1))
		}
	}
	var got []string
	for _, f := range checkLedger("page", text, ledgers["docs/evidence/conformance.md"], tests) {
		got = append(got, fmt.Sprintf("%s:%d", f.path, f.line))
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`]*)`")
	scenario = regexp.MustCompile(`^conformance:[a-z0-9_/-]+$`)
	// reason matches a reason followed by an explanation.
	reason = regexp.MustCompile(`(not ours|nothing to do|not built yet|\*\*no test yet\*\*|\*\*open\*\*): .{10,}`)
)

// checkLedger finds invalid rows in a page's tables. Code spans in the last cell must be
// names of tests.
func checkLedger(page, text string, id *regexp.Regexp, tests map[string]bool) []finding {
	var findings []finding
	seen := map[string]bool{}
	columns := 0
	for i, line := range strings.Split(text, "\n") {
		report := func(format string, args ...any) {
			findings = append(findings, finding{page, i + 1, fmt.Sprintf(format, args...)})
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "| "):
			continue
		case cells[0] == "id":
			columns = len(cells)
			continue
		case len(cells) != columns:
			report("the row has %d cells that say something, of %d", len(cells), columns)
			continue
		case !id.MatchString(cells[0]) || seen[cells[0]]:
			report("the id %q is malformed, or stands twice", cells[0])
			continue
		}
		seen[cells[0]] = true
		if what := wrongEvidence(cells[len(cells)-1], tests); what != "" {
			report("%s: %s", cells[0], what)
		}
	}
	if len(seen) == 0 {
		findings = append(findings, finding{page, 1, "there is no table"})
	}
	return findings
}

// wrongEvidence describes what is wrong with the last cell of a row, or returns "".
func wrongEvidence(cell string, tests map[string]bool) string {
	names := codeSpan.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 && !reason.MatchString(cell) {
		return "there is neither a test nor a reason"
	}
	for _, name := range names {
		dir, fn, _ := strings.Cut(name[1], ".")
		fn, _, _ = strings.Cut(fn, "/") // subtests are not checked
		if !scenario.MatchString(name[1]) && !tests[dir+"."+fn] {
			return fmt.Sprintf("there is no test %s", name[1])
		}
	}
	return ""
}

// testsOf returns the tests, fuzz tests and examples of the tree, as "mcphttp/auth.TestX".
func testsOf(tree []source) map[string]bool {
	tests := map[string]bool{}
	for _, s := range tree {
		if !s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			for _, prefix := range []string{"Test", "Fuzz", "Example"} {
				if strings.HasPrefix(fn.Name.Name, prefix) {
					tests[s.dir()+"."+fn.Name.Name] = true
				}
			}
		}
	}
	return tests
}

// goFile matches the name of a Go file, optionally with a path.
var goFile = regexp.MustCompile(`\b(?:[a-z]+/)*[a-z_]+\.go\b`)

// TestNamedFilesExist checks that the Go files named by the pages about the code exist.
func TestNamedFilesExist(t *testing.T) {
	tree, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"docs/architecture.md", "docs/decisions.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(page)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range goFile.FindAllString(string(text), -1) {
			if !slices.ContainsFunc(tree, func(s source) bool { return strings.HasSuffix("/"+s.path, "/"+name) }) {
				t.Errorf("%s: there is no file %s", page, name)
			}
		}
	}
}
