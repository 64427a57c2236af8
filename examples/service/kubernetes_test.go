// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestKubernetes checks that the file for Kubernetes can be read.
func TestKubernetes(t *testing.T) {
	file, err := os.Open("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var kinds []string
	for decoder := yaml.NewDecoder(file); ; {
		var object struct {
			Kind string         `yaml:"kind"`
			Spec map[string]any `yaml:"spec"`
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || object.Spec == nil {
			t.Fatalf("%+v, %v", object, err)
		}
		kinds = append(kinds, object.Kind)
	}
	if want := []string{"Deployment", "Service"}; !slices.Equal(kinds, want) {
		t.Errorf("it has %q, want %q", kinds, want)
	}
}
