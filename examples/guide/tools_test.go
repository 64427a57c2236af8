// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

type forecastIn struct {
	City string   `json:"city" jsonschema:"minLength=1,description=The city, and its country"`
	Days int      `json:"days,omitzero" jsonschema:"minimum=1,maximum=14,default=3"`
	Unit string   `json:"unit,omitzero" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
	Show []string `json:"show,omitzero" jsonschema:"enum=rain,enum=wind,uniqueItems=true"`
	Note string   `json:"note,omitzero" jsonschema:"A tag without words is a description"`
}

func forecast(_ context.Context, in forecastIn) (forecastIn, error) { return in, nil }

func TestForecast(t *testing.T) {
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	mux.Tool("forecast", mcp.ToolFunc(forecast, &mcp.Tool{
		Title:       "Weather forecast",
		Description: "The weather of the next days in a city.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(true)},
	}))
	got, err := mcp.Call[forecastIn](t.Context(), mcptest.Connect(t, mux), "forecast", map[string]string{"city": "Lisbon"})
	if want := (forecastIn{City: "Lisbon", Days: 3, Unit: "celsius"}); err != nil || got.Days != want.Days || got.Unit != want.Unit {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

type place struct {
	City string `json:"city" jsonschema:"A city"`
}

type route struct {
	place

	Stops []place `json:"stops,omitzero"`
}

func trip(_ context.Context, in route) (route, error) { return in, nil }

func TestTrip(t *testing.T) {
	mux := mcp.NewMux("trips", "v1.0.0", &mcp.MuxOptions{Lenient: true, NoLint: true})
	mux.Tool("trip", mcp.Reshape(mcp.ToolFunc(trip, nil), mcp.Shape{Args: map[string]mcp.Arg{
		"city":         {Description: "Where the trip begins"},
		"stops[].city": {Description: "A city on the way"},
	}}))
	conn := mcptest.Connect(t, mux)
	list, err := conn.ListTools(t.Context(), nil)
	if err != nil || !strings.Contains(string(list.Tools[0].InputSchema), "Where the trip begins") {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := mcp.Call[route](t.Context(), conn, "trip", map[string]any{"city": "Lisbon", "by": "train"}); err != nil {
		t.Error(err) // "by" is dropped
	}
}

// goTypes are the types that the tables name.
var goTypes = map[string]reflect.Type{
	"string": reflect.TypeFor[string](), "int": reflect.TypeFor[int](), "uint8": reflect.TypeFor[uint8](), "float64": reflect.TypeFor[float64](),
	"bool": reflect.TypeFor[bool](), "[]string": reflect.TypeFor[[]string](), "map[string]int": reflect.TypeFor[map[string]int](), "any": reflect.TypeFor[any](),
	"*int": reflect.TypeFor[*int](), "[]byte": reflect.TypeFor[[]byte](), "time.Time": reflect.TypeFor[time.Time](),
	"time.Duration": reflect.TypeFor[time.Duration](), "url.URL": reflect.TypeFor[url.URL](), "netip.Addr": reflect.TypeFor[netip.Addr](),
}

// schemaOf returns the schema of a struct with a field x of the type and the tag, and the
// part of it for the field.
func schemaOf(t *testing.T, goType, tag string) (whole, property string) {
	t.Helper()
	typ, ok := goTypes[goType]
	if !ok {
		t.Fatalf("the table has the type %q", goType)
	}
	name := `json:"x,omitzero" `
	if strings.Contains(tag, "required") { // which contradicts omitzero
		name = `json:"x" `
	}
	field := reflect.StructField{Name: "X", Type: typ, Tag: reflect.StructTag(name + tag)}
	raw, err := jsonschema.ForType(reflect.StructOf([]reflect.StructField{field}))
	if err != nil {
		t.Errorf("%s %s: %v", goType, tag, err)
		return "", ""
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	return string(raw), string(schema.Properties["x"])
}

// tableRows returns the cells in backquotes of the rows of the page about tools that have n
// of them.
func tableRows(t *testing.T, n int) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	cell := regexp.MustCompile("\\| `([^`]*)` ")
	for line := range strings.Lines(string(page)) {
		var row []string
		for _, match := range cell.FindAllStringSubmatch(line, -1) {
			row = append(row, match[1])
		}
		if len(row) == n {
			rows = append(rows, row)
		}
	}
	return rows
}

// TestTagTable checks that the table of words has what a tag really does, and every word.
func TestTagTable(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range tableRows(t, 4) {
		word, goType, tag, want := row[0], row[1], row[2], row[3]
		listed[word] = true
		whole, got := schemaOf(t, goType, tag)
		if word == "required" {
			got = regexp.MustCompile(`"required":\[[^]]*\]`).FindString(whole)
		}
		if !strings.Contains(tag, word) || got != want {
			t.Errorf("%s: %s makes %s, but the page has %s", word, tag, got, want)
		}
	}
	for _, word := range allWords(t) {
		if !listed[word] {
			t.Errorf("the table lacks %s", word)
		}
	}
}

// allWords returns the words that the errors about unsuitable ones list.
func allWords(t *testing.T) (all []string) {
	t.Helper()
	for typ, unsuitable := range map[string]string{"string": "minimum=1", "int": "minLength=1", "bool": "minLength=1", "[]string": "minimum=1", "any": "minimum=1"} {
		field := reflect.StructField{Name: "X", Type: goTypes[typ], Tag: reflect.StructTag(`jsonschema:"` + unsuitable + `"`)}
		_, err := jsonschema.ForType(reflect.StructOf([]reflect.StructField{field}))
		if err == nil {
			t.Fatalf("%s is accepted for a field of type %s", unsuitable, typ)
		}
		_, list, found := strings.Cut(err.Error(), "which takes ")
		if !found {
			t.Fatalf("the error lists no words: %v", err)
		}
		all = append(all, strings.Split(list, ", ")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTypeTable(t *testing.T) {
	rows := tableRows(t, 2)
	if len(rows) < 10 {
		t.Errorf("the page has %d types", len(rows))
	}
	for _, row := range rows {
		if _, got := schemaOf(t, row[0], ""); got != row[1] {
			t.Errorf("%s is %s, but the page has %s", row[0], got, row[1])
		}
	}
}

// A tool is available in one session, after another tool was called there.
func TestFindingRM14ToolsOfASession(t *testing.T) {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("edit", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "edited", nil }, nil))
	var unlocked sync.Map // the sessions in which the tool edit is available
	mux.Tool("unlock", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		session := mcp.SessionFromContext(ctx)
		if session == nil {
			return "", errors.New("your client has no session in which something could be unlocked")
		}
		if _, known := unlocked.LoadOrStore(session, true); !known {
			go func() {
				<-session.Done()
				unlocked.Delete(session)
			}()
		}
		_ = session.Notify(ctx, mcp.NotificationToolsListChanged, nil) // not all clients listen
		return "The tool edit is available now.", nil
	}, nil))
	mux.Use(middleware.Visible(func(ctx context.Context, kind mcp.Kind, name string) bool {
		_, ok := unlocked.Load(mcp.SessionFromContext(ctx))
		return ok || kind != mcp.KindTool || name != "edit"
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		edit := func() error {
			_, err := mcp.Call[string](t.Context(), c, "edit", nil)
			return err
		}
		if edit() == nil {
			t.Error("the tool is available from the start")
		}
		_, err := mcp.Call[string](t.Context(), c, "unlock", nil)
		if hasSession := c.Version() != mcp.LatestVersion; (err == nil) != hasSession || (edit() == nil) != hasSession {
			t.Errorf("%s: unlock: %v; edit: %v", c.Version(), err, edit())
		}
	})
}
