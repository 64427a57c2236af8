// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"strconv"
	"strings"
)

// A Decimal is a decimal number. Two Numbers are == if they have the same value,
// however they were written. The zero Decimal is zero. It is not a big.Float: 1e999 takes
// five bytes to send, but a thousand digits to compare.
type Decimal struct {
	negative bool
	digits   string // without zeros at either end, "" for zero
	exponent int    // of ten
}

// maxExponent keeps arithmetic with exponents from overflowing.
const maxExponent = 999_999

// ParseDecimal parses a JSON number. It returns false if text is not a JSON number or has an
// exponent beyond 999,999.
func ParseDecimal(text string) (n Decimal, ok bool) {
	mantissa, exponent, hasExponent := cutExponent(text)
	mantissa, n.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, hasFraction := strings.Cut(mantissa, ".")
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || hasFraction && !isDigits(fraction) {
		return Decimal{}, false
	}
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxExponent || e < -maxExponent {
			return Decimal{}, false
		}
		n.exponent = e
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	n.digits = strings.TrimRight(digits, "0")
	if n.digits == "" {
		return Decimal{}, true
	}
	n.exponent += len(digits) - len(n.digits) - len(fraction)
	return n, true
}

func cutExponent(text string) (mantissa, exponent string, found bool) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Sign returns -1, 0 or +1.
func (n Decimal) Sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return +1
}

// IsInteger reports whether n has no fraction.
func (n Decimal) IsInteger() bool { return n.exponent >= 0 }

// maxPlain is the number of digits up to which String avoids an exponent.
const maxPlain = 64

// String returns the number in plain digits, or with an exponent if there would be too
// many digits.
func (n Decimal) String() string {
	sign := ""
	if n.negative {
		sign = "-"
	}
	point := len(n.digits) + n.exponent // number of digits before the decimal point
	switch {
	case n.digits == "":
		return "0"
	case point > maxPlain || n.exponent < -maxPlain:
		return sign + n.digits[:1] + strings.TrimRight("."+n.digits[1:], ".") + "e" + strconv.Itoa(point-1)
	case n.exponent >= 0:
		return sign + n.digits + strings.Repeat("0", n.exponent)
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + n.digits
	}
	return sign + n.digits[:point] + "." + n.digits[point:]
}
