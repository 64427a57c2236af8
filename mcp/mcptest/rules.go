// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// Methods of the legacy era.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodPing        = "ping"
	methodSetLevel    = "logging/setLevel"
)

// resultMembers are the members that a complete result must have, by method.
var resultMembers = map[string][]string{
	methodInitialize:                {"protocolVersion", "capabilities", "serverInfo"},
	mcp.MethodDiscover:              {"supportedVersions", "capabilities"},
	mcp.MethodListTools:             {"tools"},
	mcp.MethodListPrompts:           {"prompts"},
	mcp.MethodListResources:         {"resources"},
	mcp.MethodListResourceTemplates: {"resourceTemplates"},
	mcp.MethodCallTool:              {"content"},
	mcp.MethodGetPrompt:             {"messages"},
	mcp.MethodReadResource:          {"contents"},
	mcp.MethodComplete:              {"completion"},
}

// itemMembers are the members that each item of such a list must have.
var itemMembers = map[string][]string{
	"tools":             {"name", "inputSchema"},
	"prompts":           {"name"},
	"resources":         {"name", "uri"},
	"resourceTemplates": {"name", "uriTemplate"},
	"content":           {"type"},
	"messages":          {"role", "content"},
	"contents":          {"uri"},
}

// cacheableMethods are those whose results must say how long they may be kept.
var cacheableMethods = []string{
	mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
}

type object = map[string]json.RawMessage

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
	if !modern {
		return nil
	}
	if level := req.LogLevel(); level != "" {
		if _, ok := level.Level(); !ok {
			return fmt.Errorf("the level %q does not exist", level)
		}
	}
	return req.CheckMeta()
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
	var members []string
	switch code := e.Code; {
	case code == mcp.CodeUnsupportedVersion:
		members = []string{"supported", "requested"}
	case code == mcp.CodeMissingCapability:
		members = []string{"requiredCapabilities"}
	case modern && (code == mcp.CodeLegacyResourceNotFound || code == mcp.CodeURLElicitationRequired):
		return fmt.Errorf("%d is a code of the legacy era", code)
	case code > -32768 && code < -32100:
		known := []int{mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError}
		if !slices.Contains(known, code) {
			return fmt.Errorf("JSON-RPC reserves the code %d", code)
		}
	}
	if members == nil {
		return nil
	}
	data, err := decodeObject(e.Data)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return checkMembers(data, members)
}

// checkResult checks a result that answers a request.
func checkResult(req *mcp.Request, modern bool, raw json.RawMessage) error {
	res, err := decodeObject(raw)
	if err != nil {
		return err
	}
	var kind string
	if member := res["resultType"]; member != nil {
		if err := jsonv2.Unmarshal(member, &kind); err != nil {
			return fmt.Errorf("resultType: %w", err)
		}
	}
	switch {
	case modern && kind == "":
		return errors.New("it has no resultType")
	case modern && kind == mcp.ResultInputRequired:
		return checkInputRequired(req, raw)
	case kind != "" && kind != mcp.ResultComplete:
		if len(req.ClientCapabilities().Extensions) > 0 {
			return nil
		}
		return fmt.Errorf("the client declared no extension with results of the type %q", kind)
	}
	if err := errors.Join(checkMeta(req, modern, res["_meta"]), checkMembers(res, resultMembers[req.Method]), checkItems(res)); err != nil {
		return err
	}
	if modern && slices.Contains(cacheableMethods, req.Method) {
		return checkCacheable(res)
	}
	return nil
}

// checkInputRequired checks a result that asks the client.
func checkInputRequired(req *mcp.Request, raw json.RawMessage) error {
	if !slices.Contains([]string{mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource}, req.Method) {
		return fmt.Errorf("servers must not ask about %s", req.Method)
	}
	var res mcp.InputRequired
	if err := jsonv2.Unmarshal(raw, &res); err != nil {
		return err
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

// checkMeta checks the metadata of a result.
func checkMeta(req *mcp.Request, modern bool, raw json.RawMessage) error {
	meta := object{}
	if raw != nil {
		var err error
		if meta, err = decodeObject(raw); err != nil {
			return fmt.Errorf("_meta: %w", err)
		}
	}
	if raw, ok := meta[mcp.MetaServerInfo]; ok {
		info, err := decodeObject(raw)
		if err = errors.Join(err, checkMembers(info, []string{"name", "version"})); err != nil {
			return fmt.Errorf("_meta: %s: %w", mcp.MetaServerInfo, err)
		}
	}
	if modern && req.Method == mcp.MethodListen && string(meta[mcp.MetaSubscriptionID]) != req.ID.String() {
		return fmt.Errorf("_meta: %s is %s; want %s", mcp.MetaSubscriptionID, meta[mcp.MetaSubscriptionID], req.ID)
	}
	return nil
}

// checkCacheable checks the cache hints of a result.
func checkCacheable(res object) error {
	var ttl int64
	var scope string
	if jsonv2.Unmarshal(res["ttlMs"], &ttl) != nil || ttl < 0 {
		return fmt.Errorf("ttlMs is %q; want a number of milliseconds", res["ttlMs"])
	}
	if jsonv2.Unmarshal(res["cacheScope"], &scope) != nil || scope != mcp.CachePublic && scope != mcp.CachePrivate {
		return fmt.Errorf("cacheScope is %q; want public or private", res["cacheScope"])
	}
	return nil
}

// checkItems checks the items of the lists in a result.
func checkItems(res object) error {
	for list, members := range itemMembers {
		raw, ok := res[list]
		if !ok {
			continue
		}
		var items []object
		if err := jsonv2.Unmarshal(raw, &items); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
		for i, item := range items {
			if err := checkMembers(item, members); err != nil {
				return fmt.Errorf("%s[%d]: %w", list, i, err)
			}
		}
	}
	return nil
}

func checkMembers(o object, names []string) error {
	for _, name := range names {
		if raw, ok := o[name]; !ok || string(raw) == "null" {
			return fmt.Errorf("the member %s is missing", name)
		}
	}
	return nil
}

func decodeObject(raw json.RawMessage) (object, error) {
	var o object
	if err := jsonv2.Unmarshal(raw, &o); err != nil || o == nil {
		return nil, errors.Join(errors.New("it is not an object"), err)
	}
	return o, nil
}
