// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
)

// Extra holds the members of an object that this package does not know. They
// are kept when a message is passed on.
type Extra map[string]json.RawMessage

// marshal is the one encoder of this package: deterministic, so that equal values are equal
// bytes. What is not valid UTF-8 in a text is replaced, as package encoding/json does:
// otherwise a single byte in a row of a database would cost the whole result.
func marshal(v any) ([]byte, error) { return strictjson.MarshalWith(lenientEncoding, plainly(v)) }

var (
	replacing       = jsontext.AllowInvalidUTF8(true)
	lenientEncoding = jsonv2.JoinOptions(plainEncoding, replacing)
)

// marshalStrictly refuses what is not valid UTF-8: params, which would ask for something
// else, and state, whose keys would be others.
func marshalStrictly(v any) ([]byte, error) { return strictjson.MarshalWith(plainEncoding, plainly(v)) }

// unmarshal is the one decoder: names match with case, no member stands twice,
// text is valid UTF-8.
func unmarshal(data []byte, v any) error {
	return strictjson.UnmarshalWith(plainDecoding, data, plainly(v))
}

// unmarshalBase64 decodes media and blobs. In contrast to the JSON package it accepts every
// common form of base64: with line breaks, without padding, and with the letters of URLs.
// Servers send them, and other clients accept them or do not look.
func unmarshalBase64(d *jsontext.Decoder, data *[]byte) error {
	if d.PeekKind() != '"' {
		return errors.ErrUnsupported // the JSON package decodes null, and refuses the rest
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	if *data, err = base64.StdEncoding.DecodeString(text); err != nil {
		text = strings.TrimRight(standardBase64.Replace(text), "=")
		*data, err = base64.RawStdEncoding.DecodeString(text)
	}
	return err
}

var standardBase64 = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", "\t", "", " ", "")

// mustMarshal encodes values of this package's own types. What is not valid UTF-8 in a
// text, such as the error that a call is cancelled with, is replaced.
func mustMarshal(v any) []byte { return strictjson.MustMarshalWith(plainEncoding, plainly(v)) }

// marshalValue encodes a value of the program's own strictly, and decode decodes into one;
// see [strictjson.UnmarshalValue]. marshalOutput replaces what is not valid UTF-8.
func marshalValue(v any) ([]byte, error) { return strictjson.MarshalValue(v) }

func marshalOutput(v any) ([]byte, error) { return strictjson.MarshalValueWith(replacing, v) }

func decode(data []byte, v any) error { return strictjson.UnmarshalValue(data, v) }

// decodeProblem tells a peer what of its value did not fit; see [strictjson.Problem].
func decodeProblem(what string, err error) string { return what + ": " + strictjson.Problem(err) }
