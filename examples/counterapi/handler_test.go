package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

func newService(t *testing.T, opts ...exact.Option) (*miniredis.Miniredis, http.Handler) {
	t.Helper()
	logging.Disable()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	counters, err := exact.Open(client, "counters", opts...)
	require.NoError(t, err)
	return server, newHandler(counters, slog.New(slog.DiscardHandler))
}

// call sends a request and returns the status and the body.
func call(t *testing.T, h http.Handler, method, path, body string, header ...string) (int, map[string]any, http.Header) {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, reader)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer map[string]any
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	}
	return w.Code, answer, w.Header()
}

func TestCountsByID(t *testing.T) {
	_, h := newService(t)
	for _, step := range []struct {
		method, path, body string
		want               map[string]any
	}{
		{"GET", "/counters/a", "", map[string]any{"id": "a", "count": 0.0}},
		{"POST", "/counters/a", "", map[string]any{"id": "a", "count": 1.0}},
		{"POST", "/counters/a", `{}`, map[string]any{"id": "a", "count": 2.0}},
		{"POST", "/counters/a", `{"amount": 5}`, map[string]any{"id": "a", "count": 7.0}},
		{"POST", "/counters/b%2Fc%20%7Bd%7D", "", map[string]any{"id": "b/c {d}", "count": 1.0}},
		{"GET", "/counters/a", "", map[string]any{"id": "a", "count": 7.0}},
		{"DELETE", "/counters/a", "", map[string]any{"id": "a", "deleted": true}},
		{"DELETE", "/counters/a", "", map[string]any{"id": "a", "deleted": false}},
		{"GET", "/counters/a", "", map[string]any{"id": "a", "count": 0.0}},
	} {
		status, answer, _ := call(t, h, step.method, step.path, step.body)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, step.want, answer)
	}
}

func TestConflictAtTheMaximumHasTheCountInItsBody(t *testing.T) {
	_, h := newService(t, exact.Max(3), exact.TTL(time.Minute))
	call(t, h, "POST", "/counters/a", `{"amount": 3}`)
	status, answer, header := call(t, h, "POST", "/counters/a", "")
	require.Equal(t, http.StatusConflict, status)
	require.EqualValues(t, 3, answer["count"])
	require.EqualValues(t, 3, answer["max"])
	require.InDelta(t, 60_000, answer["resetMs"], 1000)
	require.Equal(t, "60", header.Get("Retry-After"))
	require.Equal(t, "the maximum is reached", answer["error"])

	_, h = newService(t)
	call(t, h, "POST", "/counters/a", `{"amount": 9223372036854775807}`)
	status, answer, _ = call(t, h, "POST", "/counters/a", "")
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "the count cannot be higher", answer["error"])
}

func TestIdempotencyKey(t *testing.T) {
	_, h := newService(t)
	for range 3 {
		status, answer, _ := call(t, h, "POST", "/counters/a", `{"amount": 2}`, "Idempotency-Key", "k")
		require.Equal(t, http.StatusOK, status)
		require.EqualValues(t, 2, answer["count"])
	}
	status, answer, _ := call(t, h, "POST", "/counters/a", `{"amount": 3}`, "Idempotency-Key", "k")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, answer["error"], "another amount")
}

func TestBadRequests(t *testing.T) {
	_, h := newService(t)
	for name, test := range map[string]struct {
		method, path, body string
		header             []string
		want               int
	}{
		"no id":             {"POST", "/counters/", "", nil, http.StatusNotFound},
		"other path":        {"GET", "/", "", nil, http.StatusNotFound},
		"other method":      {"PUT", "/counters/a", "", nil, http.StatusMethodNotAllowed},
		"long id":           {"POST", "/counters/" + strings.Repeat("x", 201), "", nil, http.StatusBadRequest},
		"amount 0":          {"POST", "/counters/a", `{"amount": 0}`, nil, http.StatusBadRequest},
		"negative amount":   {"POST", "/counters/a", `{"amount": -1}`, nil, http.StatusBadRequest},
		"fraction":          {"POST", "/counters/a", `{"amount": 1.5}`, nil, http.StatusBadRequest},
		"too large a count": {"POST", "/counters/a", `{"amount": 9223372036854775808}`, nil, http.StatusBadRequest},
		"text":              {"POST", "/counters/a", `{"amount": "1"}`, nil, http.StatusBadRequest},
		"misspelled":        {"POST", "/counters/a", `{"amuont": 1}`, nil, http.StatusBadRequest},
		"no JSON":           {"POST", "/counters/a", `amount=1`, nil, http.StatusBadRequest},
		"two values":        {"POST", "/counters/a", `{"amount": 1} {"amount": 1}`, nil, http.StatusBadRequest},
		"large body":        {"POST", "/counters/a", `{"amount":` + strings.Repeat(" ", 2000) + `1}`, nil, http.StatusRequestEntityTooLarge},
		"empty key":         {"POST", "/counters/a", "", []string{"Idempotency-Key", ""}, http.StatusBadRequest},
		"long key":          {"POST", "/counters/a", "", []string{"Idempotency-Key", strings.Repeat("x", 201)}, http.StatusBadRequest},
		"two keys":          {"POST", "/counters/a", "", []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, _ := call(t, h, test.method, test.path, test.body, test.header...)
			require.Equal(t, test.want, status)
		})
	}
	_, answer, _ := call(t, h, "GET", "/counters/a", "")
	require.EqualValues(t, 0, answer["count"], "none of them counted")
}

func TestStoreThatIsAway(t *testing.T) {
	server, h := newService(t)
	server.Close()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		status, answer, header := call(t, h, method, "/counters/a", "")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.NotEmpty(t, answer["error"])
		require.NotContains(t, answer["error"], "127.0.0.1", "what Redis said stays inside")
		require.Equal(t, "1", header.Get("Retry-After"))
	}
}

func TestManyCallersSellEachSeatOnceConcurrentSafe(t *testing.T) {
	_, h := newService(t, exact.Max(100))
	var sold, refused atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/counters/seats", nil)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				switch w.Code {
				case http.StatusOK:
					sold.Add(1)
				case http.StatusConflict:
					refused.Add(1)
				default:
					t.Error(w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(100), sold.Load())
	require.Equal(t, int64(60), refused.Load())
}
