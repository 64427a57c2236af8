// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package full

import (
	"math/big"
	"net/url"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/go-psi/psi/internal/decimal"
	"github.com/go-psi/psi/internal/validator"
)

// failureOf translates what the validator found, with all its causes.
func failureOf(v *santhosh.ValidationError) *validator.Failure {
	f := &validator.Failure{}
	if !group(v.ErrorKind, f) && !value(v.ErrorKind, f) && !number(v.ErrorKind, f) && !size(v.ErrorKind, f) {
		f.Keyword = strings.Join(v.ErrorKind.KeywordPath(), "/")
	}
	f.Schema, f.At = schemaTokens(v.SchemaURL), v.InstanceLocation
	for _, cause := range v.Causes {
		f.Causes = append(f.Causes, failureOf(cause))
	}
	return f
}

// schemaTokens returns where in the document the schema of a URL is.
func schemaTokens(schemaURL string) []string {
	_, fragment, _ := strings.Cut(schemaURL, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// group is for what brackets its causes, and for what is about properties.
func group(k santhosh.ErrorKind, f *validator.Failure) bool {
	switch k := k.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
	case *kind.AnyOf:
		f.Keyword = "anyOf"
	case *kind.OneOf:
		f.Keyword = "oneOf"
		if len(k.Subschemas) == 2 {
			f.Got = [2]int(k.Subschemas)
		}
	case *kind.Required:
		f.Keyword, f.Names = "required", k.Missing
	case *kind.DependentRequired:
		f.Keyword, f.Names, f.Because = "dependentRequired", k.Missing, k.Prop
	case *kind.Dependency:
		f.Keyword, f.Names, f.Because = "dependencies", k.Missing, k.Prop
	case *kind.AdditionalProperties:
		f.Keyword, f.Names = "additionalProperties", k.Properties
	case *kind.PropertyNames:
		f.Keyword, f.Names = "propertyNames", []string{k.Property}
	default:
		return false
	}
	return true
}

// value is for keywords about values of every type, and about texts.
func value(k santhosh.ErrorKind, f *validator.Failure) bool {
	switch k := k.(type) {
	case *kind.Type:
		f.Keyword, f.Want = "type", k.Want
	case *kind.Enum:
		f.Keyword, f.Want, f.Got = "enum", k.Want, k.Got
	case *kind.Const:
		f.Keyword, f.Want, f.Got = "const", []any{k.Want}, k.Got
	case *kind.Format:
		f.Keyword, f.Want = "format", k.Want
	case *kind.Pattern:
		f.Keyword, f.Want = "pattern", k.Want
	case *kind.FalseSchema:
		f.Keyword = "false"
	case *kind.Not:
		f.Keyword = "not"
	case *kind.RefCycle:
		f.Keyword = "$ref"
	default:
		return false
	}
	return true
}

func number(k santhosh.ErrorKind, f *validator.Failure) bool {
	var want *big.Rat
	switch k := k.(type) {
	case *kind.Minimum:
		f.Keyword, want = "minimum", k.Want
	case *kind.Maximum:
		f.Keyword, want = "maximum", k.Want
	case *kind.ExclusiveMinimum:
		f.Keyword, want = "exclusiveMinimum", k.Want
	case *kind.ExclusiveMaximum:
		f.Keyword, want = "exclusiveMaximum", k.Want
	case *kind.MultipleOf:
		f.Keyword, want = "multipleOf", k.Want
	default:
		return false
	}
	digits, _ := want.FloatPrec() // exact: it was read from JSON
	n, _ := decimal.Parse(want.FloatString(digits))
	f.Want = n.String()
	return true
}

func size(k santhosh.ErrorKind, f *validator.Failure) bool {
	switch k := k.(type) {
	case *kind.MinLength:
		f.Keyword, f.Want, f.Got = "minLength", k.Want, k.Got
	case *kind.MaxLength:
		f.Keyword, f.Want, f.Got = "maxLength", k.Want, k.Got
	case *kind.MinItems:
		f.Keyword, f.Want, f.Got = "minItems", k.Want, k.Got
	case *kind.MaxItems:
		f.Keyword, f.Want, f.Got = "maxItems", k.Want, k.Got
	case *kind.MinProperties:
		f.Keyword, f.Want, f.Got = "minProperties", k.Want, k.Got
	case *kind.MaxProperties:
		f.Keyword, f.Want, f.Got = "maxProperties", k.Want, k.Got
	case *kind.MinContains:
		f.Keyword, f.Want, f.Got = "minContains", k.Want, len(k.Got)
	case *kind.MaxContains:
		f.Keyword, f.Want, f.Got = "maxContains", k.Want, len(k.Got)
	case *kind.Contains:
		f.Keyword, f.Want, f.Got = "contains", 1, 0
	case *kind.AdditionalItems:
		f.Keyword, f.Got = "additionalItems", k.Count
	case *kind.UniqueItems:
		f.Keyword, f.Got = "uniqueItems", k.Duplicates
	default:
		return false
	}
	return true
}
