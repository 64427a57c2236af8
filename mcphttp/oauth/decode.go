// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode decodes a JSON object that answers a call into a struct. Many servers send a member
// of the wrong type that the client does not need. Such members, and such elements of lists,
// are left out with a warning. If a needed member has the wrong type, decode decodes the
// others and returns an error. Missing members are zero.
func (e *egress) decode(ctx context.Context, c *call, data []byte, into any, needed ...string) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	var odd []string
	var failed error
	fields := reflect.ValueOf(into).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		member, ok := members[name]
		if name == "" || !ok {
			continue
		}
		isWhole, err := decodeMember(member, fields.Field(i))
		switch {
		case err != nil && slices.Contains(needed, name):
			failed = fmt.Errorf("member %q: %w", name, err)
		case !isWhole:
			odd = append(odd, name)
		}
	}
	if odd != nil {
		e.logger.WarnContext(ctx, "oauth: members of the wrong type are left out", "url", withoutQuery(c.url), "members", odd)
	}
	return failed
}

// decodeMember decodes a member, and reports whether all of it was decoded. It skips
// elements of lists that are not strings. An error means that nothing was decoded.
func decodeMember(member jsontext.Value, field reflect.Value) (isWhole bool, err error) {
	list, isList := reflect.TypeAssert[*[]string](field.Addr())
	if !isList {
		if err = json.Unmarshal(member, field.Addr().Interface()); err != nil {
			field.SetZero()
		}
		return err == nil, err
	}
	var items []jsontext.Value
	if err := json.Unmarshal(member, &items); err != nil {
		return false, err
	}
	if items != nil {
		*list = make([]string, 0, len(items))
	}
	for _, item := range items {
		var text string
		if item.Kind() == '"' && json.Unmarshal(item, &text) == nil {
			*list = append(*list, text)
		}
	}
	return len(*list) == len(items), nil
}
