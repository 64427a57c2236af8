// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A hop is a request that one replica passes on to another: a POST whose header peerHeader
// has the hop, sealed with the keys that the replicas share, and whose body is the body of
// the client. The seal proves that a replica has checked the request and authenticated its
// caller, and hides the headers of the client from the network between.
type hop struct {
	To        string         `json:"to"`    // the process
	Nonce     [16]byte       `json:"nonce"` // a hop is accepted once
	Time      time.Time      `json:"time"`
	Digest    [32]byte       `json:"digest"` // of the body of the hop
	Help      bool           `json:"help,omitzero"`
	Session   string         `json:"session"`
	Method    string         `json:"method"`
	Target    string         `json:"target"`
	Host      string         `json:"host"`
	Remote    string         `json:"remote"` // the address of the client
	Header    []byte         `json:"header"` // as on the wire, because it need not be UTF-8
	Principal *mcp.Principal `json:"principal,omitempty"`
}

// peerHeader has the sealed hop and, in the response, what became of it.
const peerHeader = "Psi-Peer"

// What became of a hop. A response without one of these did not come from a replica.
const (
	hopServed  = "served"
	hopGone    = "gone"    // the replica does not have the session, or is shutting down
	hopRefused = "refused" // the hop is not valid
)

const (
	// maxHop limits the sealed hop, in bytes. Both sides are an http.Server, which accepts a
	// header of 1 MiB unless its MaxHeaderBytes says otherwise.
	maxHop = 768 << 10
	// hopLifetime is how far the time of a hop may be from the time of the replica that gets it.
	hopLifetime = 30 * time.Second
	// maxNonces limits the hops of twice hopLifetime, which are remembered so that none is
	// accepted twice: 17,000 a second.
	maxNonces = 1 << 20
)

// hopContext binds a sealed text to its purpose: the keys may have others.
var hopContext = []byte("psi/hop")

var errHopTooLarge = mcp.Errorf(mcp.CodeInvalidRequest, "the headers of the request are too large to be passed on to the replica that has the session")

// seal returns the hop for a request of a client, and its body. The body is never empty,
// because the replica acknowledges the hop before it reads the body.
func (p *peers) seal(r *http.Request, to owner, session string, body []byte, isHelp bool) (token string, hopBody []byte, err error) {
	if len(body) == 0 {
		body = []byte("\n")
	}
	var head bytes.Buffer
	_ = r.Header.Write(&head) // never fails
	h := hop{
		To: to.Process, Time: time.Now(), Digest: sha256.Sum256(body), Help: isHelp, Session: session,
		Method: r.Method, Target: strings.ToValidUTF8(r.URL.RequestURI(), ""), Host: r.Host, Remote: r.RemoteAddr, Header: head.Bytes(), Principal: PrincipalOf(r),
	}
	_, _ = rand.Read(h.Nonce[:]) // never fails
	plain, err := strictjson.Marshal(h)
	if err != nil {
		return "", nil, mcp.Errorf(mcp.CodeInternalError, "the caller cannot be passed on to the replica that has the session: %w", err)
	}
	if token = p.ring.Seal(plain, hopContext); len(token) > maxHop {
		return "", nil, errHopTooLarge
	}
	return token, body, nil
}

// open returns the hop that a request carries. It returns an error if the request did not
// come from a replica that has the keys, came too late, or came before.
func (p *peers) open(r *http.Request) (*hop, error) {
	token := r.Header.Get(peerHeader)
	if token == "" {
		return nil, errors.New("only replicas that share the keys may use this handler; clients use the endpoint")
	}
	plain, err := p.ring.Open(token, hopContext)
	if err != nil {
		return nil, errors.New("the hop was not sealed with a key of this replica: all replicas need the same Sessions.Shared.Keys")
	}
	h := new(hop)
	if err := strictjson.UnmarshalWith(strictjson.ExactNumbers, plain, h); err != nil {
		return nil, errors.New("the hop could not be read: the replicas run different versions")
	}
	switch age := time.Since(h.Time); {
	case r.Method != http.MethodPost:
		return nil, errors.New("a hop is a POST")
	case age > hopLifetime || age < -hopLifetime:
		return nil, errors.New("the hop is too old or from the future: the clocks of the replicas differ, or it was recorded")
	case h.To != p.self.Process:
		return nil, errOtherProcess
	}
	return h, p.nonces.use(h.Nonce, time.Now())
}

// errBusy means that too many hops arrive.
var errBusy = mcp.Errorf(mcp.CodeInternalError, "other replicas pass on too many requests; try again later")

// errOtherProcess means that a hop is for a process that has ended, or that Shared.URL leads
// to another replica than its own.
var errOtherProcess = errors.New("the hop is for another process")

// request returns the request that the client sent, as found by the first replica. It ends
// with the hop. The origin and the host were checked there, and the caller authenticated.
func (h *hop) request(r *http.Request) (*http.Request, error) {
	target, err := url.ParseRequestURI(h.Target)
	if err != nil {
		return nil, err
	}
	head, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(h.Header, "\r\n"...)))).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	client := WithChallenge(WithPrincipal(r, h.Principal), func(scopes []string) string { return strings.Join(scopes, " ") }) // see peers.complete
	client.Method, client.URL, client.RequestURI, client.Host, client.RemoteAddr = h.Method, target, h.Target, h.Host, h.Remote
	client.Header = http.Header(head)
	client.Header.Set(header.Session, h.Session)
	return client, nil
}

// checkBody returns the body of the client, given the body of the hop.
func (h *hop) checkBody(body []byte) ([]byte, bool) {
	if sha256.Sum256(body) != h.Digest {
		return nil, false
	}
	if h.Method != http.MethodPost {
		return nil, true
	}
	return body, true
}

// nonces are the hops of the last hopLifetime, in two generations: the older one is
// forgotten when the younger one is twice as old as a hop may be.
type nonces struct {
	mu           sync.Mutex
	since        time.Time
	young, older map[[16]byte]struct{}
}

// use records a nonce. It returns an error if it was recorded before, or if there is no room.
func (n *nonces) use(nonce [16]byte, now time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.since) >= 2*hopLifetime {
		n.since, n.older, n.young = now, n.young, map[[16]byte]struct{}{}
	}
	_, isOld := n.older[nonce]
	_, isYoung := n.young[nonce]
	switch {
	case isOld || isYoung:
		return errors.New("the hop was used before")
	case len(n.young) >= maxNonces:
		return errBusy
	}
	n.young[nonce] = struct{}{}
	return nil
}

// maxRecord limits the record of a session, in bytes, as read from the store.
const maxRecord = 1 << 20

func recordContext(id string) []byte { return []byte("psi/session/" + id) }

// sealRecord returns what is stored for a session.
func (p *peers) sealRecord(id string, rec *sessionRecord) ([]byte, error) {
	plain, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return []byte(p.ring.Seal(plain, recordContext(id))), nil
}

// openRecord reverses sealRecord.
func (p *peers) openRecord(id string, data []byte) (*sessionRecord, error) {
	if len(data) > maxRecord {
		return nil, errors.New("mcphttp: the record of the session is too large")
	}
	plain, err := p.ring.Open(string(data), recordContext(id))
	if err != nil {
		return nil, err
	}
	rec := new(sessionRecord)
	return rec, json.Unmarshal(plain, rec)
}
