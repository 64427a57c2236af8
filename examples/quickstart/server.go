// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

//go:embed docs
var embedded embed.FS

func newMux(logger *slog.Logger) *mcp.Mux {
	docs, err := fs.Sub(embedded, "docs")
	if err != nil {
		panic(err)
	}
	mux := mcp.NewMux("quickstart", "v1.0.0", &mcp.MuxOptions{
		Instructions: "A playground. Try add, order, countdown, swatch and secret, and read docs:///welcome.md.",
		Logger:       logger,
	})
	mux.Use(middleware.Logger(logger))

	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))
	mux.Tool("order", mcp.ToolFunc(order, &mcp.Tool{Description: "Order a pizza. Asks before it costs anything."}))
	mux.Tool("countdown", mcp.ToolFunc(countdown, &mcp.Tool{Description: "Count down to zero, slowly, and report progress."}))
	mux.Tool("swatch", mcp.ToolFunc(swatch, &mcp.Tool{Description: "Paint a square in a colour."}))
	mux.Tool("secret", mcp.ToolFunc(secretOf(mux), &mcp.Tool{Description: "Reveal, or hide again, a tool that is not in the list."}))
	mux.Prompt("explain", mcp.PromptFunc(explain, &mcp.Prompt{Description: "Have something explained."}))
	mux.Resource("docs:///{+path}", mcp.FileServerFS(docs, &mcp.FileServerOptions{
		Resource: &mcp.Resource{Name: "docs", Description: "What this server has to say about itself."},
	}))
	return mux
}

type addIn struct {
	A int `json:"a" jsonschema:"description=first addend"`
	B int `json:"b" jsonschema:"description=second addend"`
}

type addOut struct {
	Sum int `json:"sum"`
}

// A tool is a function. The fields of its argument are the arguments; what it
// returns is structured content.
func add(_ context.Context, in addIn) (addOut, error) { return addOut{in.A + in.B}, nil }

// A tool can ask. Until there is an answer, Elicit returns an error that the tool
// passes on; the tool then runs again from its top. Once keeps what must not
// change meanwhile: the price that the user agrees to is the price that counts.

type orderIn struct {
	Pizza string `json:"pizza" jsonschema:"enum=margherita,enum=funghi,enum=marinara"`
}

type delivery struct {
	Address string `json:"address" jsonschema:"minLength=1"`
	Agreed  bool   `json:"agreed" jsonschema:"title=I agree to the price"`
}

func order(ctx context.Context, in orderIn) (string, error) {
	price, err := mcp.Once(ctx, "price", func(context.Context) (int, error) { return 8 + rand.IntN(5), nil }) //nolint:gosec // prices need no secrecy
	if err != nil {
		return "", err
	}
	to, err := mcp.Elicit[delivery](ctx, "delivery", fmt.Sprintf("A %s is %d euros today. Where to?", in.Pizza, price))
	if err != nil {
		return "", err
	}
	if !to.Agreed {
		return "Nothing was ordered.", nil
	}
	return fmt.Sprintf("One %s for %d euros is on its way to %s.", in.Pizza, price, to.Address), nil
}

type countdownIn struct {
	From  int `json:"from,omitzero" jsonschema:"minimum=1,maximum=100,default=3"`
	Pause int `json:"pause,omitzero" jsonschema:"minimum=0,maximum=1000,default=100" jsonschema_description:"Milliseconds between two numbers"`
}

func countdown(ctx context.Context, in countdownIn) (string, error) {
	for i := range in.From {
		mcp.Progress(ctx, float64(i+1), float64(in.From), strconv.Itoa(in.From-i))
		select {
		case <-time.After(time.Duration(in.Pause) * time.Millisecond):
		case <-ctx.Done():
			return "", context.Cause(ctx) // the client has cancelled
		}
	}
	return "Liftoff!", nil
}

type swatchIn struct {
	Colour string `json:"colour" jsonschema:"enum=red,enum=green,enum=blue"`
}

func swatch(_ context.Context, in swatchIn) (*mcp.ImageContent, error) {
	fill := map[string]color.Color{"red": color.RGBA{R: 255, A: 255}, "green": color.RGBA{G: 255, A: 255}, "blue": color.RGBA{B: 255, A: 255}}
	square := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(square, square.Bounds(), image.NewUniform(fill[in.Colour]), image.Point{}, draw.Src)
	var data bytes.Buffer
	err := png.Encode(&data, square)
	return &mcp.ImageContent{Data: data.Bytes(), MIMEType: "image/png"}, err
}

type secretIn struct {
	Revealed bool `json:"revealed"`
}

// What is registered can change while the server runs; clients are told.
func secretOf(mux *mcp.Mux) func(context.Context, secretIn) (*mcp.ResourceLink, error) {
	whisper := func(context.Context, struct{}) (string, error) { return "The cake is real.", nil }
	var mu sync.Mutex // two calls at once must not add it twice
	return func(_ context.Context, in secretIn) (*mcp.ResourceLink, error) {
		mu.Lock()
		defer mu.Unlock()
		mux.RemoveTool("whisper")
		if in.Revealed {
			mux.Tool("whisper", mcp.ToolFunc(whisper, &mcp.Tool{Description: "Tell a secret."}))
		}
		return &mcp.ResourceLink{Resource: mcp.Resource{URI: "docs:///secrets.md", Name: "secrets.md", MIMEType: "text/markdown"}}, nil
	}
}

type explainIn struct {
	Topic string `json:"topic"`
	Style string `json:"style,omitzero" jsonschema:"enum=plain,enum=poetic,enum=pirate,default=plain"`
}

func explain(_ context.Context, in explainIn) (string, error) {
	return fmt.Sprintf("Explain %s to me, in a %s style.", in.Topic, in.Style), nil
}
