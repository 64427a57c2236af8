// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floor

import "encoding/json"

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// sentParams are the parameters sent by a client.
type sentParams struct {
	callParams
	Meta meta `json:"_meta"`
}

type meta struct {
	Version      string         `json:"io.modelcontextprotocol/protocolVersion"`
	Client       implementation `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities struct{}       `json:"io.modelcontextprotocol/clientCapabilities"`
}

type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type callResult struct {
	Type       string          `json:"resultType"`
	Content    []text          `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
}

type listResult struct {
	Type  string `json:"resultType"`
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
	Tools []tool `json:"tools"`
}

type capabilities struct {
	Tools struct {
		ListChanged bool `json:"listChanged"`
	} `json:"tools"`
}

type discoverResult struct {
	Type         string         `json:"resultType"`
	TTL          int            `json:"ttlMs"`
	Scope        string         `json:"cacheScope"`
	Versions     []string       `json:"supportedVersions"`
	Capabilities capabilities   `json:"capabilities"`
	Server       implementation `json:"serverInfo"`
}

type initializeResult struct {
	Version      string         `json:"protocolVersion"`
	Capabilities capabilities   `json:"capabilities"`
	Server       implementation `json:"serverInfo"`
}
