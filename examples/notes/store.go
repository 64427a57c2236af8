// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", without C
)

// A note is a row of the database. Tools return it.
type note struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A store keeps notes in a SQLite database. It is safe for concurrent use.
type store struct{ *sql.DB }

// open opens the database in a file and creates its table.
func open(ctx context.Context, path string) (store, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
	if err != nil {
		return store{}, err
	}
	const schema = `CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, text TEXT NOT NULL)`
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return store{}, errors.Join(fmt.Errorf("notes: opening %s: %w", path, err), db.Close())
	}
	return store{db}, nil
}

// add stores a note and sets its ID.
func (s store) add(ctx context.Context, n *note) error {
	res, err := s.ExecContext(ctx, `INSERT INTO notes (title, text) VALUES (?, ?)`, n.Title, n.Text)
	if err != nil {
		return err
	}
	n.ID, err = res.LastInsertId()
	return err
}

// get returns a note. If it does not exist, the error wraps fs.ErrNotExist.
func (s store) get(ctx context.Context, id int64) (note, error) {
	n := note{ID: id}
	err := s.QueryRowContext(ctx, `SELECT title, text FROM notes WHERE id = ?`, id).Scan(&n.Title, &n.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return n, fmt.Errorf("note %d: %w", id, fs.ErrNotExist)
	}
	return n, err
}

// remove deletes a note and reports whether it existed.
func (s store) remove(ctx context.Context, id int64) (bool, error) {
	res, err := s.ExecContext(ctx, `DELETE FROM notes WHERE id = ?`, id)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// search returns up to limit notes whose title or text contains the words, oldest first.
func (s store) search(ctx context.Context, words string, limit int) ([]note, error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(words) + "%"
	return s.query(ctx, `SELECT id, title, text FROM notes WHERE title LIKE ?1 ESCAPE '\' OR text LIKE ?1 ESCAPE '\' ORDER BY id LIMIT ?2`, pattern, limit)
}

// page returns up to limit notes with an ID above after.
func (s store) page(ctx context.Context, after int64, limit int) ([]note, error) {
	return s.query(ctx, `SELECT id, title, text FROM notes WHERE id > ? ORDER BY id LIMIT ?`, after, limit)
}

func (s store) query(ctx context.Context, query string, args ...any) ([]note, error) {
	rows, err := s.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var notes []note
	for rows.Next() {
		var n note
		if err := rows.Scan(&n.ID, &n.Title, &n.Text); err != nil {
			return nil, err
		}
		notes = append(notes, n)
	}
	return notes, rows.Err()
}
