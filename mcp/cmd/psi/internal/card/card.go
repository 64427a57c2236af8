// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package card

import "encoding/json"

// Date is the version of the format that the types describe, and Schema its identifier.
const (
	Date   = "2025-12-11"
	Schema = schemaPrefix + Date + schemaSuffix

	schemaPrefix = "https://static.modelcontextprotocol.io/schemas/"
	schemaSuffix = "/server.schema.json"
)

// The types of transports.
const (
	Stdio = "stdio"
	HTTP  = "streamable-http"
	SSE   = "sse"
)

// The types of registries of packages that the official registry accepts.
const (
	NPM   = "npm"
	PyPI  = "pypi"
	NuGet = "nuget"
	OCI   = "oci"
	MCPB  = "mcpb"
)

// A Server is the content of a server.json.
type Server struct {
	Schema      string                     `json:"$schema,omitempty"`
	Name        string                     `json:"name" jsonschema:"minLength=3,maxLength=200"`
	Title       string                     `json:"title,omitempty" jsonschema:"minLength=1,maxLength=100"`
	Description string                     `json:"description" jsonschema:"minLength=1,maxLength=100"`
	Version     string                     `json:"version" jsonschema:"minLength=1,maxLength=255"`
	WebsiteURL  string                     `json:"websiteUrl,omitempty"`
	Icons       []Icon                     `json:"icons,omitempty"`
	Repository  *Repository                `json:"repository,omitempty"`
	Packages    []Package                  `json:"packages,omitempty"`
	Remotes     []Remote                   `json:"remotes,omitempty"`
	Meta        map[string]json.RawMessage `json:"_meta,omitempty"`
}

// An Icon is an image of a server.
type Icon struct {
	Src      string   `json:"src" jsonschema:"maxLength=255"`
	MIMEType string   `json:"mimeType,omitempty" jsonschema:"enum=image/png,enum=image/jpeg,enum=image/jpg,enum=image/svg+xml,enum=image/webp"`
	Sizes    []string `json:"sizes,omitempty" jsonschema:"pattern=^([0-9]+x[0-9]+|any)$"`
	Theme    string   `json:"theme,omitempty" jsonschema:"enum=light,enum=dark"`
}

// A Repository is where the source code of a server is.
type Repository struct {
	URL       string `json:"url"`
	Source    string `json:"source"` // "github" or "gitlab"
	ID        string `json:"id,omitempty"`
	Subfolder string `json:"subfolder,omitempty"`
}

// A Package is a server that a host downloads and starts.
type Package struct {
	RegistryType         string     `json:"registryType"`
	RegistryBaseURL      string     `json:"registryBaseUrl,omitempty"`
	Identifier           string     `json:"identifier" jsonschema:"minLength=1"`
	Version              string     `json:"version,omitempty" jsonschema:"minLength=1"`
	FileSHA256           string     `json:"fileSha256,omitempty" jsonschema:"pattern=^[a-f0-9]{64}$"`
	RuntimeHint          string     `json:"runtimeHint,omitempty"`
	Transport            Transport  `json:"transport"`
	RuntimeArguments     []Argument `json:"runtimeArguments,omitempty"`
	PackageArguments     []Argument `json:"packageArguments,omitempty"`
	EnvironmentVariables []Variable `json:"environmentVariables,omitempty"`
}

// A Transport is how to talk to the server of a package.
type Transport struct {
	Type    string     `json:"type" jsonschema:"enum=stdio,enum=streamable-http,enum=sse"`
	URL     string     `json:"url,omitempty"` // may contain {variables}
	Headers []Variable `json:"headers,omitempty"`
}

// A Remote is a server that is running at an address.
type Remote struct {
	Type      string           `json:"type" jsonschema:"enum=streamable-http,enum=sse"`
	URL       string           `json:"url"` // may contain {variables}
	Headers   []Variable       `json:"headers,omitempty"`
	Variables map[string]Input `json:"variables,omitempty"`
}

// An Input is a value that is given, or that the host asks the user for.
type Input struct {
	Description string   `json:"description,omitempty"`
	IsRequired  bool     `json:"isRequired,omitempty"`
	IsSecret    bool     `json:"isSecret,omitempty"`
	Format      string   `json:"format,omitempty" jsonschema:"enum=string,enum=number,enum=boolean,enum=filepath"`
	Default     string   `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Value       string   `json:"value,omitempty"` // may contain {variables}
}

// A Variable is a variable of the environment, or a header.
type Variable struct {
	Name string `json:"name" jsonschema:"minLength=1"`
	Input
	Variables map[string]Input `json:"variables,omitempty"`
}

// An Argument is an argument of a command line.
type Argument struct {
	Type string `json:"type" jsonschema:"enum=positional,enum=named"`
	Name string `json:"name,omitempty"` // of a named one, with its dashes
	Input
	ValueHint  string           `json:"valueHint,omitempty"` // what a positional one is for
	IsRepeated bool             `json:"isRepeated,omitempty"`
	Variables  map[string]Input `json:"variables,omitempty"`
}
