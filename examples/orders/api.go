// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	_ "modernc.org/sqlite" // the driver "sqlite", without C
)

// An order is a row of the database.
type order struct {
	ID       int64  `json:"id"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Status   string `json:"status"`
}

// An api is a REST service that knows nothing of MCP.
type api struct{ db *sql.DB }

func open(ctx context.Context, path string) (api, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return api{}, err
	}
	db.SetMaxOpenConns(1) // an order is written by one
	const schema = `CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT, quantity INTEGER, status TEXT DEFAULT 'open', receipt BLOB)`
	_, err = db.ExecContext(ctx, schema)
	return api{db}, err
}

// routes returns the routes, for callers with the key.
func (a api) routes(key string) http.Handler {
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Api-Key")), []byte(key)) == 0 {
				problem(w, http.StatusUnauthorized, "the key is wrong")
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	r.Get("/orders", a.list)
	r.Post("/orders", a.create)
	r.Get("/orders/{id}", a.get)
	r.Put("/orders/{id}/receipt", a.attach)
	return r
}

func (a api) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	if limit == 0 {
		limit = 20
	}
	rows, err := a.db.QueryContext(r.Context(), `SELECT id, item, quantity, status FROM orders ORDER BY id DESC`)
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	defer rows.Close()
	orders, statuses := []order{}, strings.Split(r.FormValue("status"), ",")
	for rows.Next() && len(orders) < limit {
		var o order
		if err := rows.Scan(&o.ID, &o.Item, &o.Quantity, &o.Status); err != nil {
			problem(w, http.StatusInternalServerError, err.Error())
			return
		}
		if r.FormValue("status") == "" || slices.Contains(statuses, o.Status) {
			orders = append(orders, o)
		}
	}
	if err := rows.Err(); err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]any{"orders": orders})
}

func (a api) create(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Item == "" || o.Quantity < 1 {
		problem(w, http.StatusBadRequest, "expected an item and a quantity")
		return
	}
	err := a.db.QueryRowContext(r.Context(), `INSERT INTO orders (item, quantity) VALUES (?, ?) RETURNING id, status`, o.Item, o.Quantity).Scan(&o.ID, &o.Status)
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusCreated, o)
}

func (a api) get(w http.ResponseWriter, r *http.Request) {
	var o order
	err := a.db.QueryRowContext(r.Context(), `SELECT id, item, quantity, status FROM orders WHERE id = ?`, chi.URLParam(r, "id")).Scan(&o.ID, &o.Item, &o.Quantity, &o.Status)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		problem(w, http.StatusNotFound, "there is no such order; list the orders to find its id")
	case err != nil:
		problem(w, http.StatusInternalServerError, err.Error())
	default:
		answer(w, http.StatusOK, o)
	}
}

func (a api) attach(w http.ResponseWriter, r *http.Request) {
	file, header, err := r.FormFile("receipt")
	if err != nil || !slices.Contains([]string{"text/plain", "application/pdf"}, header.Header.Get("Content-Type")) {
		problem(w, http.StatusUnsupportedMediaType, "expected a receipt that is text or PDF")
		return
	}
	defer file.Close()
	receipt, err := io.ReadAll(file)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	res, err := a.db.ExecContext(r.Context(), `UPDATE orders SET status = 'paid', receipt = ? WHERE id = ? AND status = 'open'`, receipt, chi.URLParam(r, "id"))
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		problem(w, http.StatusConflict, "there is no open order with this id")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
