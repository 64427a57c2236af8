// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type monthIn struct {
	Month string `json:"month" jsonschema:"pattern=^[0-9]{4}-[0-9]{2}$,description=The month, such as 2026-11"`
}

func summary(_ context.Context, in monthIn) (string, error) {
	return "In " + in.Month + ", 3 orders came to 120 euros.", nil
}

type sales struct {
	Month  string `json:"month"`
	Orders int    `json:"orders"`
	Total  int    `json:"total" jsonschema:"description=euros"`
}

func figures(_ context.Context, in monthIn) (sales, error) {
	return sales{in.Month, 3, 120}, nil
}

func report(_ context.Context, in monthIn) (mcp.Output[sales], error) {
	s := sales{in.Month, 3, 120}
	words := fmt.Sprintf("%s was quiet: %d orders, %d euros.", s.Month, s.Orders, s.Total)
	return mcp.WithContent(s, mcp.Text(words)), nil
}

func chart(_ context.Context, _ monthIn) (mcp.Contents, error) {
	picture, err := drawChart(3, 120)
	if err != nil {
		return nil, err
	}
	return mcp.Contents{
		mcp.Text("Orders per week. The last week is not complete."),
		&mcp.ImageContent{Data: picture, MIMEType: "image/png"},
	}, nil
}

func export(_ context.Context, in monthIn) (mcp.Contents, error) {
	uri, err := mcp.ExpandURI("sales:///{month}.csv", in)
	if err != nil {
		return nil, err
	}
	return mcp.Contents{
		mcp.Text("The orders of " + in.Month + " are attached. The whole year is in a file of its own."),
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/csv", Text: "id,euros\n1,50\n2,40\n3,30\n"}},
		&mcp.ResourceLink{Resource: mcp.Resource{URI: "sales:///2026.csv", Name: "2026.csv", MIMEType: "text/csv"}},
	}, nil
}

func archive(_ context.Context, in monthIn) (*mcp.CallToolResult, error) {
	result := mcp.TextResult("Archived " + in.Month + ".")
	result.Meta.Set("example.com/receipt", "A-17") // for programs; models do not see it
	return result, nil
}

func drawChart(values ...int) ([]byte, error) {
	img := image.NewGray(image.Rect(0, 0, 10*len(values), 120))
	for i, v := range values {
		for y := range v {
			img.Set(10*i, 119-y, color.White)
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

func newSales() *mcp.Mux {
	mux := mcp.NewMux("sales", "v1.0.0", nil)
	mux.Tool("summary", mcp.ToolFunc(summary, nil))
	mux.Tool("figures", mcp.ToolFunc(figures, nil))
	mux.Tool("report", mcp.ToolFunc(report, nil))
	mux.Tool("chart", mcp.ToolFunc(chart, nil))
	mux.Tool("export", mcp.ToolFunc(export, nil))
	mux.Tool("archive", mcp.ToolFunc(archive, nil))
	return mux
}

// kinds returns the types of the blocks of a result.
func kinds(r *mcp.CallToolResult) (all string) {
	for _, c := range r.Content {
		switch c.(type) {
		case *mcp.TextContent:
			all += "t"
		case *mcp.ImageContent:
			all += "i"
		case *mcp.EmbeddedResource:
			all += "e"
		case *mcp.ResourceLink:
			all += "l"
		}
	}
	return all
}

func TestResults(t *testing.T) {
	mcptest.Run(t, newSales(), func(t *testing.T, conn *mcp.Conn) {
		november := monthIn{"2026-11"}
		for tool, want := range map[string]string{"summary": "t", "figures": "t", "report": "t", "chart": "ti", "export": "tel", "archive": "t"} {
			res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: []byte(`{"month":"2026-11"}`)})
			if err != nil || res.IsError || kinds(res) != want {
				t.Errorf("%s: got %+v, %v; want %s", tool, res, err, want)
			}
			if hasData := tool == "figures" || tool == "report"; (res.StructuredContent != nil) != hasData {
				t.Errorf("%s: structured content %s", tool, res.StructuredContent)
			}
			if receipt := string(res.Meta["example.com/receipt"]); tool == "archive" && receipt != `"A-17"` {
				t.Errorf("the receipt is %s", receipt)
			}
		}
		if err := readReport(t.Context(), conn, november); err != nil {
			t.Error(err)
		}
	})
}

func readReport(ctx context.Context, conn *mcp.Conn, in monthIn) error {
	text, err := mcp.Call[string](ctx, conn, "summary", in) // the text
	if err != nil {
		return err
	}
	data, err := mcp.Call[sales](ctx, conn, "report", in) // the structured content
	if err != nil {
		return err
	}
	both, err := mcp.Call[mcp.Output[sales]](ctx, conn, "report", in) // with the content
	if err != nil {
		return err
	}
	if text == "" || data != both.Value || len(both.Content) != 1 {
		return errors.New("something is missing")
	}
	return nil
}
