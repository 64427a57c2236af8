// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// Base64 as the libraries of other languages write it: Ruby and MIME break lines, some leave
// out the padding, and older servers in Python use the letters of URLs. Other clients accept
// that, and one image must not cost the whole result.
func TestBase64OfOtherServers(t *testing.T) {
	want := []byte{0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9}
	for _, text := range []string{
		"//79/Pv6+Q==", `//79\n/Pv6\n+Q==\n`, `//79\r\n/Pv6+Q==\r\n`, "//79/Pv6+Q", "__79_Pv6-Q==", "__79_Pv6-Q", " //79 /Pv6+Q== ", `__79\n_Pv6-Q==\n`,
	} {
		var tool mcp.CallToolResult
		err := json.Unmarshal(fmt.Appendf(nil, `{"content":[{"type":"image","data":"%s","mimeType":"image/png"},
			{"type":"audio","data":"%[1]s","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"file:///a","blob":"%[1]s"}}]}`, text), &tool)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for i, got := range [][]byte{
			tool.Content[0].(*mcp.ImageContent).Data, tool.Content[1].(*mcp.AudioContent).Data, tool.Content[2].(*mcp.EmbeddedResource).Resource.Blob,
		} {
			if !bytes.Equal(got, want) {
				t.Errorf("%q: content %d is %x", text, i, got)
			}
		}
	}
	for _, text := range []string{`"%%%"`, `"A"`, `"=AAA"`, `"AA=A"`, "1", "{}"} {
		if err := json.Unmarshal([]byte(`{"type":"image","mimeType":"image/png","data":`+text+`}`), new(mcp.ImageContent)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}
