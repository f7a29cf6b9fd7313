package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		served, failed int64
		missed         int64
		totals         map[int64]int64
		known          status
		want           string
		broken         bool
	}{
		"all":                {served: 9, totals: map[int64]int64{5: 4, 6: 5}, want: "PASS: the group counted what was served, no more and no less."},
		"twice":              {served: 9, totals: map[int64]int64{5: 4, 6: 6}, want: "FAIL: the group counted 1 more than was served.", broken: true},
		"without an answer":  {served: 9, failed: 1, totals: map[int64]int64{5: 4, 6: 6}, want: "PASS: the group counted no more than was served."},
		"less":               {served: 9, totals: map[int64]int64{5: 4}, want: "PASS: no more than was served; 5 requests are missing, see the replicas' log."},
		"less, not all read": {served: 9, totals: map[int64]int64{5: 4}, missed: 1, want: "PASS: no more than was served; 5 requests are not in what could be read."},
		"nothing counted":    {served: 9, want: "FAIL: the group counted nothing.", broken: true},
		"nothing served":     {want: "FAIL: nothing was served, so nothing is shown.", broken: true},
		"a replica is wrong": {served: 4, totals: map[int64]int64{5: 4}, known: status{Known: true, Interval: 5, Group: 3}, want: "FAIL: 1 of 1 numbers", broken: true},
		"a replica is right": {served: 4, totals: map[int64]int64{5: 4}, known: status{Known: true, Interval: 5, Group: 4}, want: "known    1 of 1 numbers"},
		"an interval unread": {served: 4, totals: map[int64]int64{5: 4}, known: status{Known: true, Interval: 7, Group: 4}, want: "known    0 of 0 numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, known := &traffic{}, newReadings(1)
			sent.answered.Store(test.served)
			sent.failed.Store(test.failed)
			known.record(0, test.known)

			v := judge(sent, &audit{totals: test.totals, missed: test.missed}, known)
			assert.Equal(t, test.broken, v.broken() != nil)
			var out strings.Builder
			v.print(&out)
			assert.Contains(t, out.String(), test.want)
		})
	}
}
