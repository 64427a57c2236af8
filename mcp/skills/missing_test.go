// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp/skills"
)

// TestFindingV12NoSkills checks that a directory without skills is not accepted in silence.
func TestFindingV12NoSkills(t *testing.T) {
	skill := &fstest.MapFile{Data: []byte("---\nname: refunds\ndescription: How to refund.\n---\n")}
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"empty":             {fstest.MapFS{}, "there is no skill: no directory has a file SKILL.md"},
		"other files":       {fstest.MapFS{"refunds/README.md": {}}, "there is no skill"},
		"lower case":        {fstest.MapFS{"refunds/skill.md": skill}, `its name is not SKILL.md" file=refunds/skill.md`},
		"one in lower case": {fstest.MapFS{"refunds/SKILL.md": skill, "billing/Skill.md": skill}, "file=billing/Skill.md"},
		"a skill":           {fstest.MapFS{"refunds/SKILL.md": skill, "refunds/skill.md": skill}, ""},
	} {
		var log bytes.Buffer
		c, err := skills.New(test.files, &skills.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil || c == nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := log.String(); strings.Count(got, "level=WARN") > 1 || (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: logged %q, want %q", name, got, test.want)
		}
	}
	if _, err := skills.New(os.DirFS("tpyo"), nil); err == nil {
		t.Error("a missing directory is accepted")
	}
}
