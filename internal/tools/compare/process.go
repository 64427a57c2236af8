// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// aloneEnv is set for a server that receives no orders.
const aloneEnv = "PSI_COMPARE_ALONE"

func (s *spec) env() string {
	text, _ := json.Marshal(s) //nolint:errchkjson // it has strings and numbers only
	return childEnv + "=" + string(text)
}

// A process is a child as seen from its parent.
type process struct {
	cmd     *exec.Cmd
	orders  *os.File
	reports *json.Decoder
	addr    string
	in      io.WriteCloser // stdin and stdout of the child
	out     io.Reader
}

// launch starts a child and waits until it is ready.
func launch(s spec) (p *process, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p = &process{cmd: exec.Command(self)} //nolint:gosec,noctx // it is this program, and ends with its orders
	p.cmd.Env = append(os.Environ(), s.env())
	p.cmd.Stderr = os.Stderr
	if s.Role == "stdio" {
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if p.out, err = p.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, theirReports, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.orders, p.reports = orders, json.NewDecoder(reports)
	p.cmd.ExtraFiles = []*os.File{theirOrders, theirReports}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_ = theirOrders.Close()
	_ = theirReports.Close()
	first, err := p.report()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.addr = first.Addr
	return p, nil
}

func (p *process) report() (r report, err error) {
	if err := p.reports.Decode(&r); err != nil {
		return r, fmt.Errorf("the child does not report: %w", err)
	}
	if r.Err != "" {
		return r, errors.New(r.Err)
	}
	return r, nil
}

// do sends an order and returns the report.
func (p *process) do(o order) (report, error) {
	if err := json.NewEncoder(p.orders).Encode(o); err != nil {
		return report{}, err
	}
	return p.report()
}

// use returns the resources used so far. If settled is set, the child first releases unused
// memory.
func (p *process) use(settled bool) (usage, error) {
	o := order{Do: "use"}
	if settled {
		o.Do = "settle"
	}
	r, err := p.do(o)
	return r.Use, err
}

func (p *process) close() error {
	_ = p.orders.Close()
	if p.in != nil {
		_ = p.in.Close()
	}
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	return p.cmd.Wait()
}
