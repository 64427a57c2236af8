// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/mcp"
)

// A Ranker returns the tools that match a query, the best first. tools has those that the
// caller may see; it and its elements must not be modified. A Ranker may be called concurrently,
// and should return an error if ctx is done.
//
// A search by meaning fits, too: compute the embedding of each definition once, and keep it by
// a hash of the definition, bounded, because servers decide how many there are.
type Ranker func(ctx context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error)

// BM25 returns a Ranker that finds the words of the query in names, titles, descriptions,
// and in the names, descriptions and values of arguments, and ranks by how rare they are among
// tools (Okapi BM25). Names are split at punctuation and at changes of case. Words match in any
// case and, in English, in singular, plural and the common forms of verbs. In languages without
// spaces between words, each pair of characters is a word.
//
// The Ranker keeps the words of the tools that it has seen, up to 64 MiB, by what their
// definitions say: callers who see different tools share them, and a list that changes costs
// as much as the tools that have changed.
func BM25() Ranker {
	// An index for each list was rejected: a thousand callers with different lists would need
	// a thousand, or build one for each search. How rare a word is depends on the list, so that
	// no caller learns of tools of others, and counting takes a millisecond for 10,000 tools.
	b := &bm25{seed: maphash.MakeSeed(), docs: lru.NewSized[uint64](maxDocumentBytes, (*document).size)}
	return b.rank
}

const maxDocumentBytes = 64 << 20

type bm25 struct {
	seed maphash.Seed

	mu   sync.Mutex
	docs *lru.Map[uint64, *document] // by a hash of the definition
}

// A document has the words of a tool, as hashes. Words or tools with the same hash, of 64 bits
// and with a random seed, would only be ranked wrongly.
type document struct {
	words   []uint64 // sorted
	weights []float32
	length  float32 // the sum of the weights
}

func (d *document) size() int {
	const fixed = 256 // for its place in the map
	return fixed + 12*len(d.words)
}

// weight returns the weight of a word, or 0.
func (d *document) weight(word uint64) float32 {
	if i, found := slices.BinarySearch(d.words, word); found {
		return d.weights[i]
	}
	return 0
}

// A match is a word of the query in a tool.
type match struct {
	tool, word int32 // indexes
	weight     float32
	length     float32 // of the document
}

func (b *bm25) rank(ctx context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error) {
	words := b.query(query)
	var matches []match
	counts, total := make([]int, len(words)), 0.0
	for i, t := range tools {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d := b.document(t)
		total += float64(d.length)
		for j, word := range words {
			if weight := d.weight(word); weight > 0 {
				matches = append(matches, match{int32(i), int32(j), weight, d.length})
				counts[j]++
			}
		}
	}
	return order(matches, counts, tools, total/float64(len(tools))), nil
}

// order returns the tools with matches, by their scores. counts has the number of tools with
// each word, and mean is the mean length of all tools.
func order(matches []match, counts []int, tools []*mcp.Tool, mean float64) []*mcp.Tool {
	const k, b = 1.5, 0.5 // b is usually 0.75: here, a long description is often a good one
	type scored struct {
		tool  int32
		score float64
	}
	var ranked []scored
	for _, m := range matches { // in the order of tools
		n := float64(counts[m.word])
		rarity := math.Log(1 + (float64(len(tools))-n+0.5)/(n+0.5))
		weight := float64(m.weight)
		score := rarity * weight * (k + 1) / (weight + k*(1-b+b*float64(m.length)/mean))
		if last := len(ranked) - 1; last >= 0 && ranked[last].tool == m.tool {
			ranked[last].score += score
		} else {
			ranked = append(ranked, scored{m.tool, score})
		}
	}
	slices.SortStableFunc(ranked, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	sorted := make([]*mcp.Tool, len(ranked))
	for i, r := range ranked {
		sorted[i] = tools[r.tool]
	}
	return sorted
}

// maxQueryWords bounds the words of a query, with their stems.
const maxQueryWords = 64

// query returns the hashes of the words of a query. Words that say nothing about a tool are left
// out, unless there are no others.
func (b *bm25) query(text string) (words []uint64) {
	add := func(form string) {
		if hash := maphash.String(b.seed, form); !slices.Contains(words, hash) && len(words) < maxQueryWords {
			words = append(words, hash)
		}
	}
	eachWord(text, false, func(word string) {
		if !fillers[word] {
			eachForm(word, add)
		}
	})
	if words == nil {
		eachWord(text, false, func(word string) { eachForm(word, add) })
	}
	return words
}

// document returns the words of a tool.
func (b *bm25) document(t *mcp.Tool) *document {
	key := b.hash(t)
	b.mu.Lock()
	d, ok := b.docs.Get(key)
	b.mu.Unlock()
	if ok {
		return d
	}
	d = b.read(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.docs.Get(key); ok {
		return d // another search was faster
	}
	b.docs.Put(key, d)
	return d
}

// hash returns a hash of everything that [bm25.read] reads.
func (b *bm25) hash(t *mcp.Tool) uint64 {
	var h maphash.Hash
	h.SetSeed(b.seed)
	for _, text := range [...]string{t.Name, t.Title, t.Description} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0xff) // which no text contains
	}
	_, _ = h.Write(t.InputSchema)
	return h.Sum64()
}

// The weights of words, by where they are.
const (
	inName        = 2
	inTitle       = 1.5
	inDescription = 1
	inArgument    = 0.5
	inAbout       = 0.25 // descriptions and values of arguments
)

// Limits of a tool's words.
const (
	maxWords     = 2000     // different ones, with their stems
	maxTextBytes = 16 << 10 // of each text
	maxValues    = 64       // of one argument
)

func (b *bm25) read(t *mcp.Tool) *document {
	weights := map[uint64]float32{}
	add := func(text string, weight float32) {
		eachWord(text[:min(len(text), maxTextBytes)], true, func(word string) {
			eachForm(word, func(form string) {
				hash := maphash.String(b.seed, form)
				if _, known := weights[hash]; known || len(weights) < maxWords {
					weights[hash] += weight
				}
			})
		})
	}
	add(t.Name, inName)
	add(t.Title, inTitle)
	add(t.Description, inDescription)
	eachArgumentText(t.InputSchema, add)
	d := &document{words: make([]uint64, 0, len(weights)), weights: make([]float32, len(weights))}
	for word := range weights {
		d.words = append(d.words, word)
	}
	slices.Sort(d.words)
	for i, word := range d.words {
		d.weights[i] = weights[word]
		d.length += weights[word]
	}
	return d
}
