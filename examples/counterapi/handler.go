package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// The limits of a request.
const (
	maxBody = 1 << 10 // bytes
	maxID   = 200     // bytes of an id, and of an Idempotency-Key
	timeout = 5 * time.Second
)

// api counts.
type api struct {
	counters *exact.Counters
	logger   *slog.Logger
}

func newHandler(counters *exact.Counters, logger *slog.Logger) http.Handler {
	a := &api{counters: counters, logger: logger}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /counters/{id}", a.with(a.add))
	mux.HandleFunc("GET /counters/{id}", a.with(a.get))
	mux.HandleFunc("DELETE /counters/{id}", a.with(a.remove))
	return mux
}

// reply is the body of every answer.
type reply struct {
	ID      string `json:"id,omitempty"`
	Count   *int64 `json:"count,omitempty"`
	Max     int64  `json:"max,omitempty"`     // the maximum, where it was reached
	Reset   int64  `json:"resetMs,omitempty"` // milliseconds until the count starts again
	Deleted *bool  `json:"deleted,omitempty"`
	Error   string `json:"error,omitempty"`
}

// with checks the id, bounds the request and writes the answer.
func (a *api) with(do func(ctx context.Context, id string, r *http.Request) (reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		id := r.PathValue("id")
		var answer reply
		err := error(badRequest("the id is too long"))
		if len(id) <= maxID {
			answer, err = do(ctx, id, r)
		}
		answer.ID = id
		a.write(w, r, answer, err)
	}
}

func (a *api) add(ctx context.Context, id string, r *http.Request) (reply, error) {
	n, err := amount(r.Body)
	if err != nil {
		return reply{}, err
	}
	var opts []exact.AddOption
	if key := r.Header.Values("Idempotency-Key"); len(key) > 0 {
		if len(key) > 1 || key[0] == "" || len(key[0]) > maxID {
			return reply{}, badRequest("the Idempotency-Key must be one, and neither empty nor too long")
		}
		opts = append(opts, exact.ID(key[0]))
	}
	count, err := a.counters.Add(ctx, id, n, opts...)
	return reply{Count: &count}, err
}

func (a *api) get(ctx context.Context, id string, _ *http.Request) (reply, error) {
	count, err := a.counters.Get(ctx, id)
	return reply{Count: &count}, err
}

func (a *api) remove(ctx context.Context, id string, _ *http.Request) (reply, error) {
	deleted, err := a.counters.Delete(ctx, id)
	return reply{Deleted: &deleted}, err
}

// amount reads {"amount": n} from the body; without a body it is 1.
func amount(body io.Reader) (int64, error) {
	request := struct {
		Amount *int64 `json:"amount"`
	}{}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&request)
	if err == io.EOF { // no body
		return 1, nil
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return 0, err
	}
	if err != nil || decoder.More() {
		return 0, badRequest(`the body must be {"amount": a whole number}`)
	}
	if request.Amount == nil {
		return 1, nil
	}
	if *request.Amount < 1 {
		return 0, badRequest("the amount must be at least 1")
	}
	return *request.Amount, nil
}

// badRequest is a mistake of the caller.
type badRequest string

func (b badRequest) Error() string { return string(b) }

// write answers with what the error means.
func (a *api) write(w http.ResponseWriter, r *http.Request, answer reply, err error) {
	status := http.StatusOK
	if err != nil {
		status, answer = explain(answer, err)
		if status >= http.StatusInternalServerError {
			a.logger.LogAttrs(r.Context(), slog.LevelError, "request failed",
				slog.String("method", r.Method), slog.String("id", answer.ID), slog.String("error", err.Error()))
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	switch {
	case status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	case answer.Reset > 0:
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(float64(answer.Reset)/1000)), 10))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}

// explain turns an error into a status and a body. What Redis said stays here.
func explain(answer reply, err error) (int, reply) {
	full, isMax := errors.AsType[*exact.MaxError](err)
	bad, isBad := errors.AsType[badRequest](err)
	_, isLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isMax:
		answer.Max, answer.Reset = full.Max, full.Reset.Milliseconds()
		answer.Error = "the maximum is reached"
		return http.StatusConflict, answer
	case errors.Is(err, exact.ErrLimit):
		answer.Max, answer.Error = math.MaxInt64, "the count cannot be higher"
		return http.StatusConflict, answer
	case isBad:
		return http.StatusBadRequest, reply{ID: answer.ID, Error: bad.Error()}
	case isLarge:
		return http.StatusRequestEntityTooLarge, reply{ID: answer.ID, Error: "the body is too large"}
	case errors.Is(err, exact.ErrIDReused):
		return http.StatusUnprocessableEntity, reply{ID: answer.ID, Error: "the Idempotency-Key was used with another amount"}
	case errors.Is(err, exact.ErrUnknown):
		return http.StatusServiceUnavailable, reply{
			ID: answer.ID, Error: "no answer from the store: it may have been counted; repeat with the same Idempotency-Key",
		}
	default:
		return http.StatusServiceUnavailable, reply{ID: answer.ID, Error: "not counted: the store is not available"}
	}
}
