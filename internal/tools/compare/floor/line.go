// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floor

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// Serve answers the lines of in on out. It flushes when no more input is buffered.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	r, w := bufio.NewReaderSize(in, 64<<10), bufio.NewWriterSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := s.Dispatch(ctx, line)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		if _, err := w.Write(append(answer, '\n')); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}
