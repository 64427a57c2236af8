// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"

	"github.com/go-psi/psi/internal/nearest"
)

// A tag is the jsonschema tag of a field, parsed strictly. invopop applies the words, but
// ignores words that it does not know or that do not apply.
type tag struct {
	words              []setting
	description        string
	required, nullable bool
	skip               bool // "-": the field is omitted from the schema
}

// A setting is a word with its value, such as minimum=1.
type setting struct{ word, value string }

func (t *tag) has(word string) bool {
	return slices.ContainsFunc(t.words, func(s setting) bool { return s.word == word })
}

// flags are the words without a value.
var flags = []string{"required", "nullable"}

// parseTag parses the tags of a field, except the json tag. A jsonschema tag without an
// equals sign is a description, as in github.com/google/jsonschema-go, unless it contains a
// word. A description extends to the end of its tag.
func parseTag(tags reflect.StructTag) (*tag, error) {
	text, t := tags.Get("jsonschema"), &tag{description: tags.Get("jsonschema_description")}
	for extra := range strings.SplitSeq(tags.Get("jsonschema_extras"), ",") {
		if extra != "" && !strings.Contains(extra, "=") {
			return nil, fmt.Errorf("the jsonschema_extras tag has %q without a value", extra)
		}
	}
	switch parts := strings.Split(text, ","); {
	case text == "":
		return t, nil
	case text == "-":
		t.skip = true
		return t, nil
	case !strings.Contains(text, "=") && !slices.ContainsFunc(parts, isWord):
		return t, t.describe(text)
	}
	return t, t.parse(text)
}

func isFlag(word string) bool { return slices.Contains(flags, word) }

func isWord(word string) bool { return isFlag(word) || words[word].check != nil }

// describe sets the description.
func (t *tag) describe(text string) error {
	if t.description != "" {
		return errors.New("there are two descriptions, in the jsonschema tag and the jsonschema_description tag")
	}
	t.description = strings.ReplaceAll(text, `\,`, ",")
	return nil
}

// parse parses a comma-separated list of words.
func (t *tag) parse(text string) error {
	for more := true; more; {
		if description, ok := strings.CutPrefix(text, "description="); ok {
			if word := findEmbeddedWord(description); word != "" {
				return fmt.Errorf(`a description runs to the end of its tag, so %q would be a part of it; put description last, or write "\\," for a comma`, word)
			}
			return t.describe(description)
		}
		var part string
		part, text, more = cutWord(text)
		word, value, hasValue := strings.Cut(part, "=")
		switch {
		case part == "":
			return errors.New("the jsonschema tag has an empty word; remove the comma")
		case part == "required":
			t.required = true
		case part == "nullable":
			t.nullable = true
		case hasValue:
			t.words = append(t.words, setting{word, value})
		case words[part].check != nil:
			return fmt.Errorf("%s needs a value, such as %[1]s=…; for a description, write \"description=%[1]s\"", part)
		default:
			return fmt.Errorf(`%q is not a word with a value%s; for a description, write "description=…" at the end of the tag`, part, didYouMean(part, flags))
		}
	}
	return nil
}

// cutWord cuts text at its first comma that does not follow a backslash.
func cutWord(text string) (word, rest string, more bool) {
	var b strings.Builder
	for i := range len(text) {
		switch {
		case text[i] != ',':
			b.WriteByte(text[i])
		case i > 0 && text[i-1] == '\\':
			escaped := b.String()
			b.Reset()
			b.WriteString(escaped[:len(escaped)-1] + ",")
		default:
			return b.String(), text[i+1:], true
		}
	}
	return b.String(), "", false
}

// findEmbeddedWord returns a word that follows a comma in a description, or "".
func findEmbeddedWord(description string) string {
	for {
		_, rest, more := cutWord(description)
		if !more {
			return ""
		}
		next, _, _ := cutWord(rest)
		if word, _, hasValue := strings.Cut(next, "="); hasValue && words[word].check != nil || isFlag(next) {
			return next
		}
		description = rest
	}
}

// structTag returns the tag for invopop. It omits the flags, which have no effect on the
// schema of the field itself.
func (t *tag) structTag(original reflect.StructTag) reflect.StructTag {
	list := make([]string, len(t.words))
	for i, s := range t.words {
		list[i] = s.word + "=" + strings.ReplaceAll(s.value, ",", `\,`)
	}
	if t.skip {
		list = []string{"-"}
	}
	return reflect.StructTag(fmt.Sprintf("json:%q jsonschema:%q jsonschema_description:%q jsonschema_extras:%q",
		original.Get("json"), strings.Join(list, ","), t.description, original.Get("jsonschema_extras")))
}

// A word describes a word of a tag, which applies to fields of some JSON types. check
// returns an error if the value is invalid; element is the type of the field, or of its
// items. invopop ignores words that it does not know or that do not apply, so this package
// parses the tags and passes them on rewritten. A description that contains a word after a
// comma is rejected rather than guessed at.
type word struct {
	types []string // nil means any
	check func(value, element string) error
}

var (
	numeric = []string{"integer", "number"}
	scalar  = []string{"string", "integer", "number", "boolean"}
)

// words are the words of tags. Words for strings and numbers also apply to the items of a list.
var words = map[string]word{
	"title":            {nil, isText},
	"description":      {nil, isText},
	"type":             {[]string{""}, isType},
	"anchor":           {nil, isText},
	"oneof_required":   {nil, isText},
	"anyof_required":   {nil, isText},
	"oneof_ref":        {nil, isText},
	"anyof_ref":        {nil, isText},
	"oneof_type":       {nil, isText},
	"anyof_type":       {nil, isText},
	"minLength":        {[]string{"string"}, isCount},
	"maxLength":        {[]string{"string"}, isCount},
	"pattern":          {[]string{"string"}, isPattern},
	"format":           {[]string{"string"}, isText},
	"readOnly":         {[]string{"string"}, isBool},
	"writeOnly":        {[]string{"string"}, isBool},
	"minimum":          {numeric, isNumber},
	"maximum":          {numeric, isNumber},
	"exclusiveMinimum": {numeric, isNumber},
	"exclusiveMaximum": {numeric, isNumber},
	"multipleOf":       {numeric, isNumber},
	"minItems":         {[]string{"array"}, isCount},
	"maxItems":         {[]string{"array"}, isCount},
	"uniqueItems":      {[]string{"array"}, isTrue},
	"enum":             {[]string{"string", "integer", "number"}, isElement},
	"example":          {[]string{"string", "integer", "number"}, isElement},
	"default":          {scalar, isElement},
}

func isText(string, string) error { return nil }

func isCount(value, _ string) error {
	if _, err := strconv.ParseUint(value, 10, 31); err != nil {
		return errors.New("it must be a whole number that is not negative")
	}
	return nil
}

func isNumber(value, _ string) error {
	if v := jsontext.Value(value); v.Kind() != '0' || !v.IsValid() {
		return errors.New("it must be a number, as in JSON")
	}
	return nil
}

func isBool(value, _ string) error {
	if value != "true" && value != "false" {
		return errors.New("it must be true or false")
	}
	return nil
}

func isTrue(value, _ string) error {
	if value != "true" {
		return errors.New("it must be true; leave it out for false")
	}
	return nil
}

func isType(value, _ string) error {
	if !slices.Contains(anyTypes, value) && value != "integer" {
		return fmt.Errorf("it must be one of integer, %s", strings.Join(anyTypes, ", "))
	}
	return nil
}

// isPattern accepts regular expressions that can be checked. JSON Schema uses the syntax of
// ECMAScript, which has more features, such as lookaheads.
func isPattern(value, _ string) error {
	_, err := regexp.Compile(value)
	return err
}

// isElement checks a value of the field, or of its items.
func isElement(value, element string) error {
	switch element {
	case "integer", "number":
		return isNumber(value, "")
	case "boolean":
		return isBool(value, "")
	}
	return nil
}

// check returns an error if a word is unknown, does not apply to a field whose type has the
// schema s, or has an invalid value.
func (t *tag) check(s *invopop.Schema, quoted bool) error {
	kind, element := s.Type, s.Type
	if quoted {
		kind, element = "string", "string"
	}
	if kind == "array" && s.Items != nil {
		element = s.Items.Type
	}
	for _, set := range t.words {
		w, known := words[set.word]
		switch {
		case !known:
			return fmt.Errorf("the jsonschema tag has the unknown word %q%s", set.word, didYouMean(set.word, wordsFor(kind, element)))
		case !w.appliesTo(kind, element):
			return fmt.Errorf("%s in the jsonschema tag does not apply to %s, which takes %s",
				set.word, described(kind), strings.Join(wordsFor(kind, element), ", "))
		}
		if err := w.check(set.value, element); err != nil {
			return fmt.Errorf("%s=%s in the jsonschema tag: %w", set.word, set.value, err)
		}
	}
	return nil
}

func (w word) appliesTo(kind, element string) bool {
	return w.types == nil || slices.Contains(w.types, kind) || kind == "array" && slices.Contains(w.types, element)
}

func described(kind string) string {
	switch kind {
	case "":
		return "a field of any type"
	case "integer", "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// wordsFor returns the words that apply to a type, except those that are rarely meant.
func wordsFor(kind, element string) []string {
	list := slices.Clone(flags)
	for name, w := range words {
		if w.appliesTo(kind, element) && !strings.Contains(name, "of_") && name != "anchor" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// didYouMean returns a hint with the known word that starts with the given one, or is most
// similar to it.
func didYouMean(given string, known []string) string {
	for _, name := range known {
		if given != "" && strings.HasPrefix(name, given) {
			return nearest.Question(name)
		}
	}
	if hint := nearest.Hint(given, known); hint != "" {
		return hint
	}
	return nearest.Hint(given, slices.Sorted(maps.Keys(words)))
}
