package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// event reads an event as API Gateway sends it.
func event(t *testing.T, name string) (e events.APIGatewayV2HTTPRequest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &e))
	return e
}

func TestEventsOfAPIGateway(t *testing.T) {
	_, h := newService(t, exact.Max(5), exact.TTL(time.Hour))
	answer := behindGateway(h)
	for _, step := range []struct {
		event  string
		status int
		body   string
	}{
		{"get", http.StatusOK, `{"id": "seats/row 7", "count": 0}`},
		{"post", http.StatusOK, `{"id": "seats/row 7", "count": 2}`},
		{"post", http.StatusOK, `{"id": "seats/row 7", "count": 2}`}, // the same Idempotency-Key
		{"post-base64", http.StatusOK, `{"id": "seats/row 7", "count": 5}`},
		{"get", http.StatusOK, `{"id": "seats/row 7", "count": 5}`},
		{"post-no-body", http.StatusOK, `{"id": "plain", "count": 1}`},
		{"delete", http.StatusOK, `{"id": "seats/row 7", "deleted": true}`},
		{"delete", http.StatusOK, `{"id": "seats/row 7", "deleted": false}`},
	} {
		response, err := answer(t.Context(), event(t, step.event))
		require.NoError(t, err)
		require.Equal(t, step.status, response.StatusCode)
		require.JSONEq(t, step.body, response.Body)
		require.Equal(t, "application/json", response.Headers["content-type"])
	}

	full := event(t, "post-base64")
	_, err := answer(t.Context(), full)
	require.NoError(t, err)
	response, err := answer(t.Context(), full)
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, response.StatusCode)
	require.Contains(t, response.Body, `"count":3,"max":5`)
	require.NotEmpty(t, response.Headers["retry-after"])
}

func TestEventsThatAreWrong(t *testing.T) {
	_, h := newService(t)
	answer := behindGateway(h)
	broken := event(t, "post-base64")
	broken.Body = "no base64!"
	other := event(t, "get")
	other.PathParameters, other.RawPath = nil, "/elsewhere"
	method := event(t, "get")
	method.RequestContext.HTTP.Method = "in valid"
	for want, e := range map[int]events.APIGatewayV2HTTPRequest{http.StatusBadRequest: broken, http.StatusNotFound: other} {
		response, err := answer(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, want, response.StatusCode)
	}
	response, err := answer(t.Context(), method)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}
