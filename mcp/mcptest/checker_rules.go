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

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// Methods of the legacy era.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodPing        = "ping"
	methodSetLevel    = "logging/setLevel"
)

// resultMembers are the members that a complete result must have, by method: "a.b" is a
// member b of each item of the list a.
var resultMembers = map[string][]string{
	methodInitialize:                {"protocolVersion", "capabilities", "serverInfo"},
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

// cacheableMethods are those whose results must say how long they may be kept.
var cacheableMethods = []string{
	mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
}

// errorMembers are the members that the data of an error must have, by code.
var errorMembers = map[int][]string{
	mcp.CodeUnsupportedVersion: {"supported", "requested"},
	mcp.CodeMissingCapability:  {"requiredCapabilities"},
}

// checkRequest checks a request of the client.
func checkRequest(req *mcp.Request, modern bool) error {
	switch req.Method {
	case mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots:
		return errors.New("it is a request of servers")
	case methodInitialize, methodPing, methodSetLevel, mcp.MethodSubscribe, "resources/unsubscribe":
		if modern {
			return errors.New("it is a request of the legacy era")
		}
	case mcp.MethodDiscover, mcp.MethodListen:
		if !modern {
			return errors.New("it is a request of the modern era")
		}
	}
	if modern {
		return core.CheckMeta(req)
	}
	return nil
}

// checkClientNotification checks that clients may send a notification.
func checkClientNotification(method string, modern bool) error {
	switch method {
	case mcp.NotificationCancelled:
		return nil
	case methodInitialized, mcp.NotificationProgress, mcp.NotificationRootsListChanged:
		if modern {
			return errors.New("it is a notification of the legacy era")
		}
		return nil
	}
	if mcp.IsMethod(method) {
		return errors.New("it is a notification of servers")
	}
	return nil // of an extension
}

// checkQuestion checks that a client may be asked a question, in either era.
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

// checkError checks an error that answers a request.
func checkError(e *mcp.Error, modern bool) error {
	known := []int{mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError}
	switch {
	case modern && (e.Code == revision.CodeResourceNotFound || e.Code == revision.CodeURLElicitationRequired):
		return fmt.Errorf("%d is a code of the legacy era", e.Code)
	case -32768 <= e.Code && e.Code < -32099 && !slices.Contains(known, e.Code):
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

// result has the members of results that are checked.
type result struct {
	mcp.Cacheable
	ResultType    *string                     `json:"resultType"`
	Meta          mcp.Meta                    `json:"_meta"`
	InputRequests map[string]mcp.InputRequest `json:"inputRequests"`
	RequestState  *string                     `json:"requestState"`
	Others        object                      `json:",embed"`

	all object
}

// checkResult checks a result that answers a request.
func checkResult(req *mcp.Request, modern bool, raw json.RawMessage) error {
	var res result
	if err := errors.Join(jsonv2.Unmarshal(raw, &res), jsonv2.Unmarshal(raw, &res.all)); err != nil {
		return err
	}
	switch kind := res.ResultType; {
	case kind == nil && modern:
		return errors.New("it has no resultType")
	case kind == nil || *kind == mcp.ResultComplete:
		return checkComplete(req, modern, &res)
	case *kind == mcp.ResultInputRequired && modern:
		return checkInputRequired(req, &res)
	case len(req.ClientCapabilities().Extensions) == 0:
		return fmt.Errorf("the client declared no extension with results of the type %q", *kind)
	case *kind == tasking.ResultTask && modern:
		return checkTask(res.all, "ttlMs")
	}
	return nil
}

// checkComplete checks a result that answers the request for good.
func checkComplete(req *mcp.Request, modern bool, res *result) error {
	if raw, ok := res.Meta[mcp.MetaServerInfo]; ok {
		var info object
		if err := errors.Join(jsonv2.Unmarshal(raw, &info), checkMembers(info, []string{"name", "version"})); err != nil {
			return fmt.Errorf("_meta: %s: %w", mcp.MetaServerInfo, err)
		}
	}
	if id := res.Meta[mcp.MetaSubscriptionID]; modern && req.Method == mcp.MethodListen && string(id) != req.ID.String() {
		return fmt.Errorf("_meta: %s is %q; want %s", mcp.MetaSubscriptionID, id, req.ID)
	}
	if modern && slices.Contains(cacheableMethods, req.Method) {
		if res.TTLMs == nil || *res.TTLMs < 0 {
			return errors.New("ttlMs is not a number of milliseconds")
		}
		if res.CacheScope != mcp.CachePublic && res.CacheScope != mcp.CachePrivate {
			return fmt.Errorf("cacheScope is %q; want public or private", res.CacheScope)
		}
	}
	switch {
	case modern && req.Method == tasking.MethodGet:
		return checkNewerTask(res.all)
	case !modern:
		if isTask, err := checkOlderResult(req, res); isTask || err != nil {
			return err
		}
	}
	return checkMembers(res.Others, resultMembers[req.Method])
}

// checkInputRequired checks a result that asks the client.
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

// checkMembers checks that an object has members, given as in resultMembers.
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
