// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"bufio"
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var pictures = flag.Bool("pictures", false, "write the pictures of the README to docs/images")

const repository = "../../.."

// maxPicture is the size of a picture in the repository, in bytes.
const maxPicture = 100_000

// The page of psi inspect lists the tools of examples/quickstart, calls one, and asks what it
// asks in a form. With -pictures, the form is photographed for the README.
func TestInspect(t *testing.T) {
	origin := inspect(t)
	ctx := open(t)
	for _, theme := range []string{"light", "dark"} {
		emulate(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		do(t, ctx, chromedp.EmulateViewport(960, 570, chromedp.EmulateScale(1.5)), chromedp.Navigate(origin))
		waitFor(t, ctx, says("Order a pizza.")+" && "+says("live"))
		screenshot(t, ctx, "inspect-"+theme)
		do(t, ctx, chromedp.Navigate(origin+"/?view=item&kind=tool&name=order"))
		waitFor(t, ctx, `document.querySelector("[name='f.pizza']") !== null`)
		do(t, ctx, chromedp.SetValue(chromedp.CSS("[name='f.pizza']"), `"funghi"`))
		clickOn(t, ctx, "button.primary")
		waitFor(t, ctx, says("A funghi is"))
		screenshot(t, ctx, "inspect-order-"+theme)
		picture := indexed(t, get(t, ctx, chromedp.CaptureScreenshot()))
		if len(picture) > maxPicture {
			t.Errorf("the picture has %d bytes", len(picture))
		}
		if !*pictures {
			continue
		}
		if err := os.WriteFile(filepath.Join(repository, "docs/images", "inspect-"+theme+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inspect runs psi inspect with the server of examples/quickstart until the test ends, and
// returns the origin of its page.
func inspect(t *testing.T) string {
	t.Helper()
	browser(t) // skips without one
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-C", repository, "-o", dir, "./mcp/cmd/psi", "./examples/quickstart")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	psi := exec.CommandContext(t.Context(), filepath.Join(dir, "psi"), "inspect", "--", filepath.Join(dir, "quickstart"))
	psi.Cancel = func() error { return psi.Process.Signal(os.Interrupt) }
	psi.WaitDelay = 10 * time.Second
	output, err := psi.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	psi.Stderr = psi.Stdout
	if err := psi.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = psi.Wait() }) // it is interrupted when the context of the test ends
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if origin := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); origin != "" {
			go func() { // so that psi can write more; ends with it
				for lines.Scan() {
				}
			}()
			return origin
		}
	}
	t.Fatal("psi inspect prints no address")
	return ""
}

// indexed returns a PNG with at most 256 colors, the most frequent ones of a picture, and
// without information about when it was made.
func indexed(t *testing.T, data []byte) []byte {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.RGBA]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(picture.Bounds(), palette)
	draw.Draw(small, small.Bounds(), picture, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
