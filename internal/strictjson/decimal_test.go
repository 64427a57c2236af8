// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/strictjson"
)

func parse(t *testing.T, text string) strictjson.Decimal {
	t.Helper()
	n, ok := strictjson.ParseDecimal(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return n
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.00e9": "0", "1": "1", "-1.50": "-1.5", "100e-2": "1", "1E+3": "1000", "0.001": "0.001", "12.34e1": "123.4",
		"1e-70": "1e-70", "-12e-999": "-1.2e-998", "1e999999": "1e999999", "1e20": "100000000000000000000",
	} {
		if got := parse(t, text).String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "-", ".", ".5", "5.", "01", "-00", "1e", "1e1.5", "1e9999999", "0x1", "1_0", "+1", "--1", "Inf", " 1", "1e-9999999"} {
		if n, ok := strictjson.ParseDecimal(text); ok {
			t.Errorf("%q is read as %v", text, n)
		}
	}
}

// Random numbers behave like those of math/big.
func TestAgreesWithBig(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b := number(random), number(random)
		check(t, a, b)
		check(t, a, a)
	}
}

func FuzzAgreesWithBig(f *testing.F) {
	f.Add("1.50", "15e-1")
	f.Add("-9007199254740993", "3")
	f.Fuzz(func(t *testing.T, a, b string) {
		const most = 20 // maximum number of digits, which bounds the work of math/big
		_, okA := strictjson.ParseDecimal(a)
		_, okB := strictjson.ParseDecimal(b)
		if okA && !json.Valid([]byte(a)) {
			t.Errorf("%q is read", a)
		}
		if okA && okB && len(a) < most && len(b) < most && !tooLarge(a) && !tooLarge(b) {
			check(t, a, b)
		}
	})
}

func tooLarge(text string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	return len(exponent) > len("-999")
}

func number(random *rand.Rand) string {
	text := fmt.Sprint(random.Int64N(1 << random.IntN(60)))
	if random.IntN(2) == 0 {
		text += fmt.Sprintf(".%d", random.IntN(1<<random.IntN(20)))
	}
	if random.IntN(2) == 0 {
		text += fmt.Sprintf("e%d", random.IntN(40)-20)
	}
	if random.IntN(3) == 0 {
		text = "-" + text
	}
	return text
}

func check(t *testing.T, a, b string) {
	t.Helper()
	n, m := parse(t, a), parse(t, b)
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if !okX || !okY {
		t.Fatalf("math/big does not read %q and %q", a, b)
	}
	if got, want := n == m, x.Cmp(y) == 0; got != want {
		t.Errorf("%s and %s: equal %t, want %t", a, b, got, want)
	}
	if n.Sign() != x.Sign() || n.IsInteger() != x.IsInt() {
		t.Errorf("%s: sign %d, integer %t", a, n.Sign(), n.IsInteger())
	}
	if back, ok := strictjson.ParseDecimal(n.String()); !ok || back != n {
		t.Errorf("%s is written as %s", a, n)
	}
}

// The negation of the minimum int overflows; such an exponent is out of range like any
// other of that size.
func TestFindingCL7LeastExponent(t *testing.T) {
	for _, text := range []string{fmt.Sprintf("1e%d", math.MinInt), fmt.Sprintf("0.5e%d", math.MinInt), fmt.Sprintf("1e%d", math.MaxInt), "1e-1000000", "1e1000000"} {
		if n, ok := strictjson.ParseDecimal(text); ok {
			t.Errorf("%s is read as %v", text, n)
		}
	}
}
