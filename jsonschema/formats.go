// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// formats are the formats that Options.AssertFormats checks.
var formats = map[string]func([]byte) bool{
	"date":      isDate,
	"date-time": isDateTime,
	"email":     isEmail,
	"uri":       isURI,
}

// isDate reports whether text is a full-date (RFC 3339, section 5.6).
func isDate(text []byte) bool {
	if len(text) != len(time.DateOnly) || text[4] != '-' || text[7] != '-' {
		return false
	}
	year, ok1 := digits(text[:4])
	month, ok2 := digits(text[5:7])
	day, ok3 := digits(text[8:])
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 {
		return false
	}
	return day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isDateTime reports whether text is a date-time (RFC 3339, section 5.6).
func isDateTime(text []byte) bool {
	if len(text) < len("2006-01-02T15:04:05Z") || text[10]|' ' != 't' || !isDate(text[:10]) {
		return false
	}
	minutes, ok := clock(text[11:16])
	second, isNumber := digits(text[17:19])
	if !ok || !isNumber || text[16] != ':' || second > 60 {
		return false
	}
	offset, ok := zone(withoutFraction(text[19:]))
	const day = 24 * 60
	leap := (minutes-offset+day)%day == day-1 // the last minute of a day in UTC
	return ok && (second < 60 || leap)
}

// clock parses hh:mm and returns minutes.
func clock(text []byte) (minutes int, ok bool) {
	hour, ok1 := digits(text[:2])
	minute, ok2 := digits(text[3:])
	return hour*60 + minute, ok1 && ok2 && text[2] == ':' && hour < 24 && minute < 60
}

// withoutFraction removes a leading dot and the digits after it.
func withoutFraction(text []byte) []byte {
	if len(text) == 0 || text[0] != '.' {
		return text
	}
	rest := bytes.TrimLeft(text[1:], "0123456789")
	if len(rest) == len(text)-1 {
		return text
	}
	return rest
}

// zone parses a time zone and returns its offset in minutes.
func zone(text []byte) (minutes int, ok bool) {
	if len(text) == 1 {
		return 0, text[0]|' ' == 'z'
	}
	if len(text) != len("+01:00") || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	minutes, ok = clock(text[1:])
	if text[0] == '-' {
		minutes = -minutes
	}
	return minutes, ok
}

func digits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// isEmail reports whether text is a Mailbox (RFC 5321, section 4.1.2), in ASCII and
// without escapes in a quoted local part.
func isEmail(text []byte) bool {
	at := bytes.LastIndexByte(text, '@')
	if at < 1 || at > 64 || len(text) > 254 {
		return false
	}
	local, domain := text[:at], text[at+1:]
	if len(local) > 1 && local[0] == '"' {
		inner, closed := bytes.CutSuffix(local[1:], []byte(`"`))
		return closed && !bytes.ContainsAny(inner, `"\`) && isPrintable(inner) && isDomain(domain)
	}
	return isDotAtom(local) && isDomain(domain)
}

func isPrintable(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func isDotAtom(text []byte) bool {
	for len(text) > 0 {
		atom, rest, more := bytes.Cut(text, []byte("."))
		if len(atom) == 0 || more && len(rest) == 0 || len(bytes.TrimFunc(atom, isAtext)) > 0 {
			return false
		}
		text = rest
	}
	return true
}

func isAtext(r rune) bool {
	return isAlphanumeric(r) || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

func isAlphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r|' ' && r|' ' <= 'z' && r < 0x80
}

// isDomain reports whether text is a host name, or an address in brackets.
func isDomain(text []byte) bool {
	if inner, ok := bytes.CutPrefix(text, []byte("[")); ok {
		inner, ok = bytes.CutSuffix(inner, []byte("]"))
		addr, err := netip.ParseAddr(strings.TrimPrefix(string(inner), "IPv6:"))
		return ok && err == nil && addr.Is6() == bytes.HasPrefix(inner, []byte("IPv6:"))
	}
	if len(text) == 0 || len(text) > 253 {
		return false
	}
	for more := true; more; {
		var label []byte
		label, text, more = bytes.Cut(text, []byte("."))
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || !isLabel(label) {
			return false
		}
	}
	return true
}

func isLabel(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r != '-' && !isAlphanumeric(r) })
}

// isURI reports whether text is a URI with a scheme (RFC 3986), according to package url.
func isURI(text []byte) bool {
	u, err := url.Parse(string(text))
	return err == nil && u.IsAbs()
}
