// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
)

// unspaced are scripts that are written without spaces between words or, in the case of
// Hangul, with particles attached to them.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// A class is a kind of character, for finding words.
type class int

const (
	other class = iota
	lower       // letters without case, too
	upper
	digit
	glyph // of an unspaced script
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case 'a' <= r && r <= 'z':
			return lower
		case 'A' <= r && r <= 'Z':
			return upper
		case '0' <= r && r <= '9':
			return digit
		}
		return other
	case unicode.In(r, unspaced...):
		return glyph
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r), unicode.IsMark(r):
		return lower
	case unicode.IsDigit(r):
		return digit
	}
	return other
}

// eachWord calls fn with the words of a text, in lower case. A word like "GitHub" is also a
// part of "git hub", so fn is called with both. For languages without spaces, words are pairs
// of characters; with single, single characters are words, too, so that a query of one finds
// them.
func eachWord(text string, single bool, fn func(word string)) {
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		kind := classOf(r)
		switch kind {
		case other:
			text = text[size:]
			continue
		case glyph:
			end := runEnd(text, func(c class) bool { return c == glyph })
			eachPair(text[:end], single, fn)
			text = text[end:]
		case digit:
			end := runEnd(text, func(c class) bool { return c == digit })
			fn(text[:end])
			text = text[end:]
		default:
			end := runEnd(text, func(c class) bool { return c == lower || c == upper })
			eachPart(text[:end], fn)
			text = text[end:]
		}
	}
}

// runEnd returns the index of the first character whose class does not belong to a run.
func runEnd(text string, belongs func(class) bool) int {
	for i, r := range text {
		if !belongs(classOf(r)) {
			return i
		}
	}
	return len(text)
}

// eachPair calls fn with each two successive characters of text.
func eachPair(text string, single bool, fn func(word string)) {
	before := -1
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			end = i + 1
		}
		if before >= 0 {
			fn(text[before:end])
		}
		if single || before < 0 && end == len(text) {
			fn(text[i:end])
		}
		before = i
	}
}

// eachPart calls fn with a word and, if its case changes inside, with its parts: those of
// "parseHTMLPage" are parse, html and page.
func eachPart(word string, fn func(part string)) {
	start, previous := 0, other
	emit := func(end int) {
		if end > start {
			fn(strings.ToLower(word[start:end]))
		}
		start = end
	}
	for i, r := range word {
		kind := classOf(r)
		switch {
		case i == 0:
		case previous == lower && kind == upper:
			emit(i)
		case previous == upper && kind == upper:
			// The last of several capitals begins the next part, if a small letter follows.
			if next, _ := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):]); classOf(next) == lower {
				emit(i)
			}
		}
		previous = kind
	}
	whole := start > 0
	emit(len(word))
	if whole {
		fn(strings.ToLower(word))
	}
}

// eachForm calls fn with a word and, if it may be English, with its stem, so that a tool with
// the word itself is a better match than one with another form of it.
func eachForm(word string, fn func(form string)) {
	fn(word)
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return
		}
	}
	fn("~" + stem(word)) // "~" is in no word
}

// stem returns an English word without the ending of a plural or of a form of a verb, so that
// "issues", and "created" and "creating", match "issue" and "create". It is applied to queries
// and tools alike, so what it returns need not be a word.
func stem(word string) string {
	n := len(word)
	switch {
	case n > 4 && strings.HasSuffix(word, "ies"):
		return word[:n-3] + "y"
	case n > 5 && strings.HasSuffix(word, "ing"):
		word = single(word[:n-3])
	case n > 4 && strings.HasSuffix(word, "ed"):
		word = single(word[:n-2])
	case n > 4 && strings.HasSuffix(word, "es") && strings.ContainsAny(word[n-3:n-2], "sxzh"):
		word = word[:n-2]
	case n > 3 && strings.HasSuffix(word, "s") && !strings.ContainsAny(word[n-2:n-1], "siu"):
		word = word[:n-1]
	}
	if len(word) > 3 {
		word = strings.TrimSuffix(word, "e")
	}
	return word
}

// single returns a word without the doubling of its last letter, as in "running".
func single(word string) string {
	if n := len(word); n > 3 && word[n-1] == word[n-2] && !strings.ContainsAny(word[n-1:], "lsz") {
		return word[:n-1]
	}
	return word
}

// fillers are words of questions that say nothing about a tool.
var fillers = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq("a an and any are as at be by can could do does for from has have how i in into is it its me my of on or our " +
		"please should some that the their them there these this those to tool tools use using want was we what when where which who will with would you your") {
		words[word] = true
	}
	return words
}()

// eachArgumentText calls add with the names, descriptions and values of the arguments in a
// schema, at every depth.
func eachArgumentText(schema json.RawMessage, add func(text string, weight float32)) {
	if schema == nil || jsonscan.Valid(schema, 0) != nil {
		return
	}
	a := argumentReader{scan: jsonscan.Get(schema, 0), add: add}
	defer a.scan.Release()
	a.schema()
}

type argumentReader struct {
	scan *jsonscan.Scanner
	add  func(text string, weight float32)
}

// schema reads the next value, which may be a schema or a list of schemas.
func (a *argumentReader) schema() {
	switch a.scan.Kind() {
	case '[':
		for ok := a.scan.Array() && a.scan.Element(); ok; ok = a.scan.Element() {
			a.schema()
		}
		return
	case '{':
	default:
		a.scan.Skip()
		return
	}
	for ok := a.scan.Object() && a.scan.Member(); ok; ok = a.scan.Member() {
		switch string(a.scan.Name()) {
		case "properties":
			a.schemas(inArgument)
		case "$defs", "definitions":
			a.schemas(0)
		case "description", "title", "const":
			a.text()
		case "enum":
			a.values()
		case "items", "anyOf", "oneOf", "allOf", "additionalProperties":
			a.schema()
		default:
			a.scan.Skip()
		}
	}
}

// schemas reads an object of schemas, and adds their names unless the weight is 0.
func (a *argumentReader) schemas(weight float32) {
	if a.scan.Kind() != '{' {
		a.scan.Skip()
		return
	}
	for ok := a.scan.Object() && a.scan.Member(); ok; ok = a.scan.Member() {
		if weight > 0 {
			a.add(string(a.scan.Name()), weight)
		}
		a.schema()
	}
}

// text reads the next value, and adds it if it is a string.
func (a *argumentReader) text() {
	isText := a.scan.Kind() == '"'
	if value := a.scan.Value(); isText && value != nil {
		a.add(jsonscan.Text(value), inAbout)
	}
}

func (a *argumentReader) values() {
	if a.scan.Kind() != '[' {
		a.scan.Skip()
		return
	}
	n := 0
	for ok := a.scan.Array() && a.scan.Element(); ok; ok = a.scan.Element() {
		if n++; n > maxValues {
			a.scan.Skip()
			continue
		}
		a.text()
	}
}
