package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHistoryValidate(t *testing.T) {
	// 10 offered; 7 and 1 counted; 2 reported.
	good := func() *History {
		h := NewHistory()
		h.Offered(10)
		h.Held(1, 7)
		h.Held(2, 1)
		h.Dropped("closed", 1)
		h.Dropped(Unsure, 1)
		h.Seen(1, 7, 3)
		return h
	}
	require.NoError(t, good().Validate())

	for want, spoil := range map[string]func(*History){
		"overstated": func(h *History) { h.Held(2, 2) },
		"lost":       func(h *History) { h.Offered(1) },
		"told 6":     func(h *History) { h.Seen(1, 6, 0) },
		"told 1":     func(h *History) { h.Seen(3, 1, 0) },
		"own part":   func(h *History) { h.Seen(1, 7, 8) },
	} {
		h := good()
		spoil(h)
		require.ErrorContains(t, h.Validate(), want)
	}
	// What is unsure may have been counted.
	h := good()
	h.Held(2, 1)
	require.NoError(t, h.Validate())

	require.ErrorContains(t, NewHistory().Validate(), "shows nothing")
}
