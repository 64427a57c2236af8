// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// A view is one view of the page. The query and the template use its name. events are the events
// that change it, and model returns its title and the model that is rendered as HTML or JSON.
type view struct {
	name   string
	events []string
	model  func(p *page, r *http.Request, caller *mcp.Principal) (title string, model any, err error)
}

var views = []view{
	{"overview", []string{eventActivity, eventRuns}, (*page).overview},
	{"registered", []string{eventLists}, (*page).registered},
	{"item", []string{eventLists}, (*page).itemView},
	{"request", []string{eventActivity}, (*page).requestView},
	{"run", []string{eventRuns}, (*page).runView},
}

// overview is the model of the first view.
type overview struct {
	Server        server              `json:"server"`
	Since         time.Time           `json:"observedSince"`
	Plots         []plot              `json:"plots"`
	InFlight      []request           `json:"inFlight"`
	Recent        []request           `json:"recent"`
	Runs          []runSummary        `json:"calls"`
	Endpoints     []endpoint          `json:"endpoints"`
	Subscriptions []seam.Subscription `json:"subscriptions"`
	Tasks         []seam.Tasks        `json:"tasks"` // of each manager
}

// server describes the handler, from its discovery result.
type server struct {
	Name         string   `json:"name"`
	Version      string   `json:"version,omitempty"`
	Title        string   `json:"title,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	Offers       []string `json:"offers"`
	Err          string   `json:"error,omitempty"`
}

// request is a record in human-readable form.
type request struct {
	Number    uint64          `json:"number"`
	Method    string          `json:"method"`
	Name      string          `json:"name,omitempty"`
	Era       string          `json:"era"`
	Version   string          `json:"version,omitempty"`
	Round     int             `json:"round"`
	Caller    string          `json:"caller,omitempty"`
	Client    string          `json:"client,omitempty"`
	Remote    string          `json:"remote,omitempty"`
	Session   string          `json:"session,omitempty"`
	Start     time.Time       `json:"start"`
	Duration  time.Duration   `json:"duration"` // so far, if it is in flight
	Outcome   string          `json:"outcome"`  // "" if it is in flight
	Code      int             `json:"code,omitzero"`
	Err       string          `json:"error,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// endpoint describes an endpoint with its open sessions and streams.
type endpoint struct {
	Type     string        `json:"type"`
	InFlight int           `json:"inFlight"`
	Sessions []session     `json:"sessions"`
	Streams  []seam.Stream `json:"streams"`
}

type session struct {
	ID      string `json:"id"` // as in logs
	Version string `json:"version"`
	Client  string `json:"client,omitempty"`
	Caller  string `json:"caller,omitempty"`
}

// maxShown is the maximum number of sessions, streams or running tasks that are shown in one
// list.
const maxShown = 200

func (p *page) overview(r *http.Request, caller *mcp.Principal) (string, any, error) {
	now := time.Now()
	o := &overview{Server: p.serverFor(r, caller), Since: p.attention.observedSince(), Plots: plots(p.recorder.seconds(now))}
	inFlight, recent := p.recorder.requests()
	for _, rec := range inFlight {
		if rec.method != mcp.MethodListen { // in flight for hours; shown as subscriptions
			o.InFlight = append(o.InFlight, p.show(rec, now, true))
		}
	}
	for _, rec := range recent {
		o.Recent = append(o.Recent, p.show(rec, now, false))
	}
	for _, run := range p.runs.all() {
		o.Runs = append(o.Runs, run.summary(now))
	}
	for _, e := range p.opts.Endpoints {
		o.Endpoints = append(o.Endpoints, describeEndpoint(e))
	}
	if mux, ok := p.handler.(*mcp.Mux); ok {
		o.Subscriptions = core.Subscriptions(mux)
	}
	for _, m := range p.opts.Tasks {
		o.Tasks = append(o.Tasks, p.showTasks(m))
	}
	return "Overview", o, nil
}

// showTasks returns the tasks of a manager as they are shown.
func (p *page) showTasks(m *tasks.Manager) seam.Tasks {
	all := background.Tasks(m)
	all.Running = all.Running[:min(len(all.Running), maxShown)]
	for i := range all.Running {
		all.Running[i].Message = redact.Text(all.Running[i].Message)
	}
	return all
}

// serverFor returns the description of the handler, or the error if it is unknown.
func (p *page) serverFor(r *http.Request, caller *mcp.Principal) server {
	said, err := p.describe(r.Context(), caller, false)
	if err != nil {
		return server{Name: "unknown", Err: withCauses(err)}
	}
	var info mcp.Implementation
	said.Meta.Get(mcp.MetaServerInfo, &info)
	s := server{Name: cmp.Or(info.Name, "unnamed"), Version: info.Version, Title: info.Title, Instructions: cut(said.Instructions)}
	raw, err := json.Marshal(said.Capabilities)
	var offers map[string]json.RawMessage
	if err == nil && json.Unmarshal(raw, &offers) == nil {
		for name := range offers {
			s.Offers = append(s.Offers, name)
		}
	}
	slices.Sort(s.Offers)
	return s
}

// show returns a record as it is shown. If the request is in flight, the fields that are set at
// its end are not read.
func (p *page) show(rec *record, now time.Time, inFlight bool) request {
	out := request{
		Number: rec.number, Method: rec.method, Name: redact.Text(rec.name), Era: "modern", Version: rec.version, Round: rec.round,
		Caller: callerName(rec.principal), Client: clientName(rec.sender), Remote: rec.remote, Session: redact.Session(rec.session),
		Start: rec.start, Duration: now.Sub(rec.start),
	}
	if rec.isLegacy {
		out.Era = "legacy"
	}
	if p.opts.Values {
		out.Arguments = redact.JSON(rec.arguments, &p.rules)
	}
	if inFlight {
		return out
	}
	out.Duration, out.Outcome, out.Code, out.Err = rec.duration, rec.outcome, rec.code, redact.Text(rec.err)
	if p.opts.Values {
		out.Result = redact.JSON(rec.result, &p.rules)
	}
	return out
}

func callerName(p *mcp.Principal) string {
	switch {
	case p == nil:
		return ""
	case p.Subject == "":
		return p.Issuer
	}
	return p.Subject
}

// clientName returns the name and the version that a client reports.
func clientName(info string) string {
	var i mcp.Implementation
	if info == "" || json.Unmarshal([]byte(info), &i) != nil {
		return ""
	}
	return clip(i.Name+" "+i.Version, maxName)
}

func describeEndpoint(e Endpoint) endpoint {
	out := endpoint{Type: fmt.Sprintf("%T", e), InFlight: web.InFlight(e)}
	for s := range e.Sessions() {
		shown := session{ID: redact.Session(s.ID()), Version: s.Version(), Caller: callerName(s.Principal())}
		if info := s.ClientInfo(); info != nil {
			shown.Client = clip(info.Name+" "+info.Version, maxName)
		}
		out.Sessions = append(out.Sessions, shown)
		if len(out.Sessions) == maxShown {
			break
		}
	}
	slices.SortFunc(out.Sessions, func(a, b session) int { return cmp.Compare(a.ID, b.ID) })
	out.Streams = web.Streams(e)
	out.Streams = out.Streams[:min(len(out.Streams), maxShown)]
	return out
}

// registeredModel is the model of the view of registered items.
type registeredModel struct {
	Server server  `json:"server"`
	Groups []group `json:"groups"`
	Err    string  `json:"error,omitempty"` // error of a list request
}

type group struct {
	Kind  string  `json:"kind"`
	Title string  `json:"title"`
	Items []*item `json:"items"`
}

// HasSites reports whether it is known where items were registered: at a server in another
// process, it is not.
func (g group) HasSites() bool {
	return slices.ContainsFunc(g.Items, func(it *item) bool { return it.Site != "" })
}

var groupTitles = map[string]string{
	"tool": "Tools", "prompt": "Prompts", "resource": "Resources", "template": "Resource templates", "method": "Methods", "mount": "Mounts",
}

func (p *page) registered(r *http.Request, caller *mcp.Principal) (string, any, error) {
	all, err := p.items(r.Context(), caller)
	if err != nil && all == nil {
		return "", nil, err
	}
	m := &registeredModel{Server: p.serverFor(r, caller), Groups: []group{}}
	if err != nil {
		m.Err = withCauses(err)
	}
	for _, kind := range kinds {
		g := group{Kind: kind, Title: groupTitles[kind]}
		for _, it := range all {
			if it.Kind == kind {
				g.Items = append(g.Items, it)
			}
		}
		if len(g.Items) > 0 {
			m.Groups = append(m.Groups, g)
		}
	}
	return "Registered", m, nil
}

// itemModel is the model of the view of one item.
type itemModel struct {
	*item

	InputText, OutputText string `json:"-"`
	CanCall, CanShow      bool   `json:"-"`
	Verb                  string `json:"-"`
}

var verbs = map[string]string{"tool": "Call", "prompt": "Get", "resource": "Read", "template": "Read"}

func (p *page) itemView(r *http.Request, caller *mcp.Principal) (string, any, error) {
	it, err := p.item(r.Context(), caller, r.URL.Query().Get("kind"), r.URL.Query().Get("name"))
	if err != nil {
		return "", nil, err
	}
	m := &itemModel{item: it, InputText: pretty(it.Input), OutputText: pretty(it.Output), Verb: verbs[it.Kind]}
	m.CanCall = m.Verb != "" && !p.opts.ReadOnly
	m.CanShow = m.CanCall && m.App != "" && p.opts.Apps != ""
	return it.Name, m, nil
}

// requestModel is the model of the view of one request.
type requestModel struct {
	request

	InFlight      bool   `json:"inFlight"`
	ArgumentsText string `json:"-"`
	ResultText    string `json:"-"`
	ShowsValues   bool   `json:"-"`
}

func (p *page) requestView(r *http.Request, _ *mcp.Principal) (string, any, error) {
	number, _ := strconv.ParseUint(r.URL.Query().Get("number"), 10, 64)
	rec, inFlight := p.recorder.find(number)
	if rec == nil {
		return "", nil, failure{http.StatusNotFound, "this request is not remembered, or no longer"}
	}
	m := &requestModel{request: p.show(rec, time.Now(), inFlight), InFlight: inFlight, ShowsValues: p.opts.Values}
	m.ArgumentsText, m.ResultText = pretty(m.Arguments), pretty(m.Result)
	return m.Method + " " + m.Name, m, nil
}
