// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// rules are the rules of one era, for the requests, notifications and responses of the
// client, and for the results and errors that the server returns.
type rules interface {
	checkRequest(req *mcp.Request) error
	checkClientNotification(method string) error
	checkResponse(id mcp.ID) error
	checkResult(req *mcp.Request, raw json.RawMessage) error
	checkError(e *transport.Error) error
}

type modernRules struct{}

// resultMembers are the members that a complete result must have, by method. "a.b" means
// member b of each item of the list a.
var resultMembers = map[string][]string{
	mcp.MethodDiscover:              {"supportedVersions", "capabilities"},
	mcp.MethodListTools:             {"tools", "tools.name", "tools.inputSchema"},
	mcp.MethodListPrompts:           {"prompts", "prompts.name"},
	mcp.MethodListResources:         {"resources", "resources.name", "resources.uri"},
	mcp.MethodListResourceTemplates: {"resourceTemplates", "resourceTemplates.name", "resourceTemplates.uriTemplate"},
	mcp.MethodCallTool:              {"content", "content.type"},
	mcp.MethodGetPrompt:             {"messages", "messages.role", "messages.content"},
	mcp.MethodReadResource:          {"contents", "contents.uri"},
	mcp.MethodComplete:              {"completion"},
}

// cacheableMethods are the methods whose results must have cache hints.
var cacheableMethods = []string{
	mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
}

// errorMembers are the members that the data of an error must have, by code.
var errorMembers = map[int][]string{
	mcp.CodeUnsupportedVersion: {"supported", "requested"},
	mcp.CodeMissingCapability:  {"requiredCapabilities"},
}

func (modernRules) checkRequest(req *mcp.Request) error {
	if isLegacyRequest(req.Method) {
		return errors.New("it is a request of the legacy era")
	}
	return core.CheckMeta(req)
}

func (modernRules) checkClientNotification(method string) error {
	switch {
	case method == mcp.NotificationCancelled:
		return nil
	case isLegacyClientNotification(method):
		return errors.New("it is a notification of the legacy era")
	case mcp.IsMethod(method):
		return errors.New("it is a notification of servers")
	}
	return nil // defined by an extension
}

func (modernRules) checkResponse(mcp.ID) error {
	return fmt.Errorf("clients send no responses in %s", mcp.LatestVersion)
}

// checkQuestion checks, for either era, that the client has declared the capability for a
// question.
func checkQuestion(caps *mcp.ClientCapabilities, q mcp.InputRequest) error {
	var declared bool
	switch q.Method {
	case mcp.MethodElicit:
		var p mcp.ElicitParams
		if err := jsonv2.Unmarshal(q.Params, &p); err != nil {
			return err
		}
		declared = caps.Elicitation.AllowsForm()
		if p.Mode == "url" {
			declared = caps.Elicitation.AllowsURL()
		}
	case mcp.MethodCreateMessage:
		declared = caps.Sampling != nil
	case mcp.MethodListRoots:
		declared = caps.Roots != nil
	default:
		return fmt.Errorf("servers do not send %s", q.Method)
	}
	if !declared {
		return fmt.Errorf("the client did not declare the capability for %s", q.Method)
	}
	return nil
}

func (modernRules) checkError(e *transport.Error) error {
	if isLegacyCode(e.Code) {
		return fmt.Errorf("%d is a code of the legacy era", e.Code)
	}
	return checkError(e)
}

// checkError checks the rules for errors that both eras share.
func checkError(e *transport.Error) error {
	known := []int{mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError}
	if -32768 <= e.Code && e.Code < -32099 && !slices.Contains(known, e.Code) {
		return fmt.Errorf("JSON-RPC reserves the code %d", e.Code)
	}
	members := errorMembers[e.Code]
	if members == nil {
		return nil
	}
	var data object
	if err := jsonv2.Unmarshal(e.Data, &data); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return checkMembers(data, members)
}

type object = map[string]json.RawMessage

// A result holds the members of a result that are checked.
type result struct {
	mcp.Cacheable
	ResultType    *string                     `json:"resultType"`
	Meta          mcp.Meta                    `json:"_meta"`
	InputRequests map[string]mcp.InputRequest `json:"inputRequests"`
	RequestState  *string                     `json:"requestState"`
	Others        object                      `json:",inline,embed"`

	all object
}

// parseResult decodes a result and checks the rules that both eras share.
func parseResult(raw json.RawMessage) (*result, error) {
	res := new(result)
	if err := errors.Join(jsonv2.Unmarshal(raw, res), jsonv2.Unmarshal(raw, &res.all)); err != nil {
		return nil, err
	}
	if raw, ok := res.Meta[mcp.MetaServerInfo]; ok {
		var info object
		if err := errors.Join(jsonv2.Unmarshal(raw, &info), checkMembers(info, []string{"name", "version"})); err != nil {
			return nil, fmt.Errorf("_meta: %s: %w", mcp.MetaServerInfo, err)
		}
	}
	return res, nil
}

func (modernRules) checkResult(req *mcp.Request, raw json.RawMessage) error {
	res, err := parseResult(raw)
	switch {
	case err != nil:
		return err
	case res.ResultType == nil:
		return errors.New("it has no resultType")
	}
	switch kind := *res.ResultType; {
	case kind == mcp.ResultComplete:
		return checkComplete(req, res)
	case kind == mcp.ResultInputRequired:
		return checkInputRequired(req, res)
	case len(req.ClientCapabilities().Extensions) == 0:
		return errNoExtension(kind)
	case kind == tasking.ResultTask:
		return checkTask(res.all)
	}
	return nil
}

func errNoExtension(kind string) error {
	return fmt.Errorf("the client declared no extension with results of the type %q", kind)
}

// checkComplete checks a final result.
func checkComplete(req *mcp.Request, res *result) error {
	if id := res.Meta[mcp.MetaSubscriptionID]; req.Method == mcp.MethodListen && string(id) != req.ID.String() {
		return fmt.Errorf("_meta: %s is %q; want %s", mcp.MetaSubscriptionID, id, req.ID)
	}
	if slices.Contains(cacheableMethods, req.Method) {
		if res.TTLMs == nil || *res.TTLMs < 0 {
			return errors.New("ttlMs is not a number of milliseconds")
		}
		if res.CacheScope != mcp.CachePublic && res.CacheScope != mcp.CachePrivate {
			return fmt.Errorf("cacheScope is %q; want public or private", res.CacheScope)
		}
	}
	if req.Method == tasking.MethodGet {
		return checkDetailedTask(res.all)
	}
	return checkMembers(res.Others, resultMembers[req.Method])
}

// checkInputRequired checks a result that asks the client questions.
func checkInputRequired(req *mcp.Request, res *result) error {
	switch req.Method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource:
	default:
		return fmt.Errorf("servers must not ask about %s", req.Method)
	}
	if len(res.InputRequests) == 0 && res.RequestState == nil {
		return errors.New("it has neither inputRequests nor requestState")
	}
	for key, q := range res.InputRequests {
		if err := checkQuestion(req.ClientCapabilities(), q); err != nil {
			return fmt.Errorf("inputRequests[%q]: %w", key, err)
		}
	}
	return nil
}

// checkMembers checks that an object has the members given by paths, in the form used by
// resultMembers.
func checkMembers(o object, paths []string) error {
	for _, path := range paths {
		list, member, isItem := strings.Cut(path, ".")
		if raw, ok := o[list]; !ok || string(raw) == "null" {
			return fmt.Errorf("the member %s is missing", list)
		}
		if !isItem {
			continue
		}
		var items []object
		if err := jsonv2.Unmarshal(o[list], &items); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
		for i, item := range items {
			if err := checkMembers(item, []string{member}); err != nil {
				return fmt.Errorf("%s[%d]: %w", list, i, err)
			}
		}
	}
	return nil
}
