package main

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The OpenAPI file and the template name the routes that the handler has.
func TestFilesNameTheRoutes(t *testing.T) {
	var api struct {
		Paths map[string]map[string]struct {
			Responses map[string]any `yaml:"responses"`
		} `yaml:"paths"`
	}
	text, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	// "parameters" is a list beside the methods.
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal(text, &raw))
	path := raw["paths"].(map[string]any)["/counters/{id}"].(map[string]any)
	delete(path, "parameters")
	text, err = yaml.Marshal(raw)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &api))

	_, h := newService(t)
	documented := map[string]string{}
	for method, operation := range api.Paths["/counters/{id}"] {
		status, _, _ := call(t, h, strings.ToUpper(method), "/counters/a", "")
		require.Equal(t, http.StatusOK, status, method)
		documented[method] = strings.Join(slices.Sorted(maps.Keys(operation.Responses)), " ")
	}
	require.Equal(t, map[string]string{
		"post": "200 400 409 413 422 503", "get": "200 400 503", "delete": "200 400 503",
	}, documented)

	text, err = os.ReadFile("template.yaml")
	require.NoError(t, err)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		require.Contains(t, string(text), `Method: `+method+`, Path: "/counters/{id}"`)
	}
}
