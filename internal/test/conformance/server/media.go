// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	"github.com/go-psi/psi/mcp"
)

const (
	typePNG = "image/png"
	typeWAV = "audio/wav"
)

// redDot returns an image of one red pixel.
func redDot() *mcp.ImageContent {
	return &mcp.ImageContent{Data: redPNG(), MIMEType: typePNG}
}

func redPNG() []byte {
	pixel := image.NewRGBA(image.Rect(0, 0, 1, 1))
	pixel.Set(0, 0, color.RGBA{R: 0xff, A: 0xff})
	var b bytes.Buffer
	if err := png.Encode(&b, pixel); err != nil {
		panic("server: a pixel could not be encoded: " + err.Error())
	}
	return b.Bytes()
}

// silence returns a short silent recording: 8000 samples per second, 16 bits, one channel.
func silence() *mcp.AudioContent {
	const rate, width, samples = 8000, 2, 16
	var b bytes.Buffer
	write := func(parts ...any) {
		for _, part := range parts {
			if text, ok := part.(string); ok {
				part = []byte(text)
			}
			if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
				panic("server: a sound could not be encoded: " + err.Error())
			}
		}
	}
	const pcm, channels, header = uint16(1), uint16(1), 36
	write("RIFF", uint32(header+samples*width), "WAVE")
	write("fmt ", uint32(16), pcm, channels, uint32(rate), uint32(rate*width), uint16(width), uint16(8*width))
	write("data", uint32(samples*width), make([]byte, samples*width))
	return &mcp.AudioContent{Data: b.Bytes(), MIMEType: typeWAV}
}
