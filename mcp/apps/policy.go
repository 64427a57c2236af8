// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"fmt"
	"regexp"
	"strings"
)

// source matches an origin in a content security policy, such as
// https://*.example:8443/path. It excludes the characters that end a source or a directive.
var source = regexp.MustCompile(`^((https?|wss?)://)?(\*\.)?[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*(:([0-9]{1,5}|\*))?(/[a-zA-Z0-9._~!$&()*+=:@%/-]*)?$`)

// maxSources bounds the number of sources in one list.
const maxSources = 200

// listNames are the names of the lists of a policy.
var listNames = []string{"connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"}

// list returns the list with a name, or nil if there is none.
func (c *CSP) list(name string) *[]string {
	switch name {
	case "connectDomains":
		return &c.ConnectDomains
	case "resourceDomains":
		return &c.ResourceDomains
	case "frameDomains":
		return &c.FrameDomains
	case "baseUriDomains":
		return &c.BaseURIDomains
	}
	return nil
}

func isSource(s string) bool { return len(s) <= 500 && source.MatchString(s) }

// Validate returns an error if a domain is not an origin or a list is too long. Otherwise a
// page could write its own directives into the policy that confines it.
func (c *CSP) Validate() error {
	for _, name := range listNames {
		list := *c.list(name)
		if len(list) > maxSources {
			return fmt.Errorf("csp.%s has %d domains, and the limit is %d", name, len(list), maxSources)
		}
		for i, s := range list {
			if !isSource(s) {
				return fmt.Errorf("csp.%s[%d] is %.100q; it must be an origin such as https://api.example", name, i, s)
			}
		}
	}
	return nil
}

// Policy returns the value of the header Content-Security-Policy for a page with the
// metadata. Without a CSP, a page can use only inline scripts and styles, and cannot
// connect to anything. Forms can never be submitted.
func (m *PageMeta) Policy() string {
	c := m.CSP
	connect := "'none'"
	if c != nil {
		connect = join("'self'", c.ConnectDomains)
	} else {
		c = &CSP{}
	}
	orNone := func(list []string, otherwise string) string {
		if len(list) == 0 {
			return otherwise
		}
		return strings.Join(list, " ")
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + join("'self' 'unsafe-inline'", c.ResourceDomains),
		"style-src " + join("'self' 'unsafe-inline'", c.ResourceDomains),
		"img-src " + join("'self' data:", c.ResourceDomains),
		"media-src " + join("'self' data:", c.ResourceDomains),
		"font-src " + join("'self'", c.ResourceDomains),
		"connect-src " + connect,
		"frame-src " + orNone(c.FrameDomains, "'none'"),
		"base-uri " + orNone(c.BaseURIDomains, "'self'"),
		"object-src 'none'",
		"form-action 'none'",
	}, "; ")
}

func join(first string, more []string) string {
	return strings.Join(append([]string{first}, more...), " ")
}

// Allow returns the value of the attribute allow of a frame that grants the permissions. It
// returns "" if p is nil.
func (p *Permissions) Allow() string {
	if p == nil {
		return ""
	}
	var granted []string
	for _, each := range []struct {
		asked bool
		name  string
	}{{p.Camera, "camera"}, {p.Microphone, "microphone"}, {p.Geolocation, "geolocation"}, {p.ClipboardWrite, "clipboard-write"}} {
		if each.asked {
			granted = append(granted, each.name)
		}
	}
	return strings.Join(granted, "; ")
}

// The values of the attribute sandbox. SandboxProxy is for the frame with the proxy, which
// has its own origin. SandboxPage is for the frame with the page inside it, which then has
// an opaque origin.
const (
	SandboxProxy = "allow-scripts allow-same-origin allow-forms"
	SandboxPage  = "allow-scripts allow-forms"
)
