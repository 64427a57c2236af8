// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
)

// Visible hides from the caller every item for which visible returns false. Calling,
// getting, reading, completing or subscribing to a hidden item fails as if it did not
// exist. Hidden items are also omitted from:
//
//   - lists, including lists of skills, of the files of a skill, and of directories of
//     skills;
//   - the contents of a resource that has several contents, each with a URI;
//   - completions of a template's variables: a value is judged by the URI that results from
//     expanding the template with it and the arguments chosen before; variables without a
//     value are empty. A completion that names a URI instead of its template has no values,
//     because their URIs are unknown;
//   - updates of a subscription to a URI that has others below it.
//
// Resources are named by the normal form of their URI or template, whatever the spelling of
// the client or of the registration: compare with "kbinfo://caf%C3%A9", not "KBInfo://café".
// [mcp.Mux.Resource] describes the form. It keeps characters that are percent-encoded without
// need. Such a URI is also judged in the forms that a template would produce, and must be
// visible in all of them. A URI that a parser of the URL standard would write in another way is
// hidden, because a server behind a gateway may use one: a URI with dot segments or control
// characters or, with the schemes of the web and of files, with an unusual host or port. The
// variables of a query can appear in any order: a rule about one must search the whole query.
//
// Visible does not filter what handlers write: the text of a directory, the links in a
// tool's result, or the values completed for a prompt.
//
// Results that depend on the caller become private ([mcp.CachePrivate]): lists, and the
// contents of resources. [mcp.PrincipalFromContext] returns the caller.
//
// Use Visible around a whole mux or a mount. Lists do not pass the middleware of a single
// tool, prompt or resource, so registering one on [mcp.Mux.With] of Visible panics. Names are
// those that the caller sees, including the prefixes of mounts; around a mount, they have no
// prefix. visible is called for every element of a list, and concurrently.
// Visible panics if visible is nil.
func Visible(visible func(ctx context.Context, kind mcp.Kind, name string) bool) mcp.Middleware {
	if visible == nil {
		panic("middleware.Visible: the function must not be nil")
	}
	return hide(func(ctx context.Context, _ *mcp.Request) viewer {
		return viewer{visible: func(kind mcp.Kind, name string) bool { return visible(ctx, kind, name) }, refusal: notFound}
	})
}

// notFound returns the error for an item that does not exist.
func notFound(req *mcp.Request, kind mcp.Kind, name string) error {
	if kind == mcp.KindResource && req.Method != mcp.MethodComplete {
		return mcp.NewResourceNotFoundError(name)
	}
	return mcp.NewUnknownNameError(kind, name)
}

// hide returns middleware that shows each caller only the items visible to its viewer.
func hide(viewerOf func(ctx context.Context, req *mcp.Request) viewer) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return hiding(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			v := viewerOf(ctx, req)
			v.ctx = ctx
			req, err := v.check(req)
			if err != nil {
				return nil, err
			}
			res, err := next.ServeMCP(ctx, req)
			if err == nil {
				res, err = decodeSkills(req.Method, res)
			}
			if err != nil {
				return nil, err
			}
			if directory, ok := res.(*skills.ReadDirectoryResult); ok {
				return v.filterDirectory(req, directory)
			}
			if v.listed != nil {
				v.listed(ctx, req, res)
			}
			res = v.filter(req, res)
			if ctx.Err() != nil && req.Method != mcp.MethodListen {
				return nil, context.Cause(ctx) // the filter has stopped
			}
			return res, nil
		})
	}
}

// hiding is a [mcp.HandlerFunc] that must wrap lists too.
type hiding func(context.Context, *mcp.Request) (mcp.Result, error)

func (h hiding) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return h(ctx, req)
}

// FiltersLists implements [seam.ListFilter].
func (hiding) FiltersLists(seam.Key) {}

// A viewer is the view of one caller, for one request.
type viewer struct {
	ctx        context.Context //nolint:containedctx // of the request; filtering stops when it is done
	visible    func(kind mcp.Kind, name string) bool
	refusal    func(req *mcp.Request, kind mcp.Kind, name string) error    // of a request for a hidden item
	sameForAll bool                                                        // every caller has this view
	listed     func(ctx context.Context, req *mcp.Request, res mcp.Result) // called with results before they are filtered; may be nil
}

// scope returns the cache scope of a filtered result.
func (v viewer) scope(unfiltered string) string {
	if v.sameForAll {
		return unfiltered
	}
	return mcp.CachePrivate
}

// check rejects a request for a hidden item. Otherwise it returns the request to serve,
// from which hidden items are removed.
func (v viewer) check(req *mcp.Request) (*mcp.Request, error) {
	switch kind := req.Kind(); kind {
	case mcp.KindTool, mcp.KindPrompt:
		if !v.visible(kind, req.Name()) {
			return nil, v.refusal(req, kind, req.Name())
		}
	case mcp.KindResource:
		if !v.readable(req.Name()) {
			return nil, v.refusal(req, kind, req.Name())
		}
	}
	switch req.Method {
	case mcp.MethodComplete:
		return v.checkCompletion(req)
	case mcp.MethodListen:
		return v.filterSubscription(req)
	case skills.MethodGet:
		return v.checkSkill(req)
	}
	return req, nil
}

const refResource = "ref/resource"

func (v viewer) checkCompletion(req *mcp.Request) (*mcp.Request, error) {
	var p mcp.CompleteParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	kind, name := mcp.KindPrompt, p.Ref.Name
	if p.Ref.Type == refResource {
		kind, name = mcp.KindResource, uritemplate.NormalPattern(p.Ref.URI)
	}
	if !v.visible(kind, name) {
		return nil, v.refusal(req, kind, name)
	}
	return req, nil
}

// filterSubscription removes hidden resources from a subscription and from its
// notifications, because subscribing to a URI includes the resources below it.
func (v viewer) filterSubscription(req *mcp.Request) (*mcp.Request, error) {
	var p mcp.ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	uris := slices.DeleteFunc(p.Notifications.ResourceSubscriptions, func(uri string) bool { return v.ctx.Err() != nil || !v.readable(uri) })
	if v.ctx.Err() != nil {
		return nil, context.Cause(v.ctx)
	}
	p.Notifications.ResourceSubscriptions = uris
	if len(uris) > 0 {
		req.FilterNotifications(v.allowsNotification)
	}
	return req.WithParams(&p)
}

// allowsNotification reports whether the caller may receive a notification.
func (v viewer) allowsNotification(method string, params json.RawMessage) bool {
	if method != mcp.NotificationResourceUpdated {
		return true
	}
	note, err := mcp.NewRequest(method, params)
	return err == nil && v.readable(note.Name())
}

// filter returns a copy of a result without hidden items.
func (v viewer) filter(req *mcp.Request, res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		c := *r
		c.Tools = keepVisible(v.ctx, r.Tools, func(t *mcp.Tool) bool { return v.visible(mcp.KindTool, t.Name) })
		c.CacheScope = v.scope(r.CacheScope)
		return &c
	case *mcp.ListPromptsResult:
		c := *r
		c.Prompts = keepVisible(v.ctx, r.Prompts, func(p *mcp.Prompt) bool { return v.visible(mcp.KindPrompt, p.Name) })
		c.CacheScope = v.scope(r.CacheScope)
		return &c
	case *mcp.ListResourcesResult:
		c := *r
		c.Resources = keepVisible(v.ctx, r.Resources, func(x *mcp.Resource) bool { return v.readable(x.URI) })
		c.CacheScope = v.scope(r.CacheScope)
		return &c
	case *mcp.ListResourceTemplatesResult:
		c := *r
		c.ResourceTemplates = keepVisible(v.ctx, r.ResourceTemplates, func(t *mcp.ResourceTemplate) bool {
			return v.visible(mcp.KindResource, uritemplate.NormalPattern(t.URITemplate))
		})
		c.CacheScope = v.scope(r.CacheScope)
		return &c
	case *mcp.ReadResourceResult:
		c := *r
		if len(r.Contents) > 1 { // a single content was requested, whatever its URI
			c.Contents = keepVisible(v.ctx, r.Contents, func(x *mcp.ResourceContents) bool { return x.URI == req.Name() || v.readable(x.URI) })
		}
		c.CacheScope = v.scope(r.CacheScope)
		return &c
	case *mcp.CompleteResult:
		return v.filterCompletion(req, r)
	case *skills.ListResult:
		c := *r
		c.Skills, c.CacheScope = v.keepSkills(r.Skills), v.scope(r.CacheScope)
		return &c
	case *skills.GetResult:
		c := *r
		c.Skill, c.CacheScope = v.skill(r.Skill), v.scope(r.CacheScope)
		return &c
	}
	return res
}

// keepVisible returns the visible elements of a list, or some of them if ctx is done: servers
// decide how long their lists are.
func keepVisible[D any](ctx context.Context, list []*D, visible func(*D) bool) []*D {
	kept := make([]*D, 0, len(list))
	for _, d := range list {
		if ctx.Err() != nil {
			break
		}
		if d != nil && visible(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

// filterCompletion removes values that result in URIs of hidden resources. It also removes
// the total, which counts them.
func (v viewer) filterCompletion(req *mcp.Request, res *mcp.CompleteResult) mcp.Result {
	var p mcp.CompleteParams
	if req.Decode(&p) != nil || p.Ref.Type != refResource {
		return res // a completion for a prompt
	}
	c := *res
	c.Completion.Values, c.Completion.Total = []string{}, nil
	template, err := uritemplate.Parse(p.Ref.URI)
	if err != nil || !uritemplate.IsTemplate(p.Ref.URI) {
		return &c
	}
	values := map[string]string{}
	if p.Context != nil && p.Context.Arguments != nil {
		values = p.Context.Arguments
	}
	for _, value := range res.Completion.Values {
		if v.ctx.Err() != nil {
			break
		}
		values[p.Argument.Name] = value
		if uri, err := template.Expand(values); err == nil && v.readable(uri) {
			c.Completion.Values = append(c.Completion.Values, value)
		}
	}
	return &c
}

// readable reports whether a resource is visible, in every spelling of its URI. One whose URI
// is ambiguous is not.
func (v viewer) readable(uri string) bool {
	forms, n := spellings(uri)
	if isAmbiguous(forms[0]) {
		return false
	}
	for _, form := range forms[:n] {
		if !v.visible(mcp.KindResource, form) {
			return false
		}
	}
	return true
}

// spellings returns the normal form of a URI, and the other forms in which it must be judged.
// Handlers of templates get decoded variables, so a URI can be written in several
// ways: "files:///hr" and "files:///%68r" or, for a variable such as {+path}, "a/b" and
// "a%2Fb". All forms must be visible, so that no spelling gives access to a hidden
// resource. The template is not known here, and its variables are decoded.
func spellings(uri string) (forms [3]string, n int) {
	uri = uritemplate.Normal(uri)
	forms[0], n = uri, 1
	simple, reserved := respell(uri, isUnreserved), respell(uri, isURIChar)
	if simple != uri {
		forms[n] = simple
		n++
	}
	if reserved != simple && reserved != uri {
		forms[n] = reserved
		n++
	}
	return forms, n
}

// respell writes a URI as a template would. It encodes the bytes that cannot occur in a URI
// and decodes encoded bytes for which plain returns true.
func respell(uri string, plain func(c byte) bool) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(uri))
	for i := 0; i < len(uri); i++ {
		c, encoded := uri[i], false
		if c == '%' && i+2 < len(uri) {
			if high, low := unhex(uri[i+1]), unhex(uri[i+2]); high >= 0 && low >= 0 {
				c, encoded = byte(high<<4|low), true
				i += 2
			}
		}
		if encoded && plain(c) || !encoded && isURIChar(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// isUnreserved reports whether c is an unreserved character (RFC 3986, section 2.3), and
// isURIChar whether c is an unreserved or a reserved one (section 2.2).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isURIChar(c byte) bool {
	return isUnreserved(c) || strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0
}
