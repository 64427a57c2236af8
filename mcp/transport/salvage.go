// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"bytes"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Unreadable returns the error of a [Stream] for a message that it cannot return, for
// example because the message is too long. It looks for the id and the method in the head
// and the tail of the message, which may be cut off anywhere.
func Unreadable(head, tail []byte, code int, err error) *MessageError {
	e := &MessageError{Code: code, Err: err}
	e.Message, e.Response = salvage(head, tail)
	return e
}

// salvage returns the parts of an unreadable message that could be found, and whether it is a
// response. An id is used only if no different one was found. The parser stays strict:
// accepting unpaired surrogates, say, would change the text. Both ends of a long message are
// searched, because some servers write the id last.
func salvage(head, tail []byte) (m Message, isResponse bool) {
	var found struct {
		id, method    []byte
		answer, twice bool
	}
	note := func(name, value []byte) {
		switch string(name) {
		case "id":
			found.twice = found.twice || found.id != nil && !bytes.Equal(found.id, value)
			found.id = value
		case "method":
			found.method = value
		case "result", "error":
			found.answer = true
		}
	}
	jsonscan.Members(head, note)
	jsonscan.LastMembers(tail, note)
	id := salvageID(found.id)
	switch {
	case id.IsZero() || found.twice:
		return Message{}, false
	case isMethod(found.method) && jsonscan.Valid(found.method, 0) == nil:
		return Message{ID: id, Method: jsonscan.Text(found.method)}, false
	case found.method == nil && (found.answer || len(tail) > 0):
		return Message{ID: id.Canonical()}, true
	}
	return Message{ID: id}, false
}

// salvageItems returns the messages that can be found in a malformed batch.
func salvageItems(data []byte) (items [][]byte) {
	jsonscan.Elements(data, func(item []byte) bool {
		items = append(items, item)
		return len(items) < maxItems
	})
	return items
}

func salvageID(raw []byte) ID {
	if jsonscan.Valid(raw, 0) != nil {
		return ID{}
	}
	id, _ := ParseID(raw)
	return id
}
