package main

import (
	"errors"
	"fmt"
	"io"
)

// verdict holds what the group counted against what was served.
type verdict struct {
	served    int64 // requests that had an answer
	failed    int64 // requests without one: they may have been served
	counted   int64 // by the group, added up from Redis
	intervals int   // that the group counted in
	missed    int64 // intervals that could not be read in time
	known     int   // numbers that replicas showed as the group's
	wrong     int   // of those, the ones that are not what Redis holds
}

func judge(sent *traffic, a *audit, r *readings) verdict {
	v := verdict{
		served:    sent.answered.Load(),
		failed:    sent.failed.Load(),
		counted:   a.sum(),
		intervals: len(a.totals),
		missed:    a.missed,
	}
	for interval, all := range r.byInterval {
		total, ok := a.totals[interval]
		for _, s := range all {
			if !s.Known || !ok {
				continue
			}
			v.known++
			if s.Group != total {
				v.wrong++
			}
		}
	}
	return v
}

// broken says what is broken, or nil.
func (v verdict) broken() error {
	switch {
	case v.served == 0:
		return errors.New("nothing was served, so nothing is shown")
	case v.counted > v.served+v.failed:
		return fmt.Errorf("the group counted %d more than was served", v.counted-v.served-v.failed)
	case v.counted == 0:
		return errors.New("the group counted nothing")
	case v.wrong > 0:
		return fmt.Errorf("%d of %d numbers that replicas took for the group's were not", v.wrong, v.known)
	}
	return nil
}

func (v verdict) print(w io.Writer) {
	fmt.Fprintf(w, "\nserved   %d requests had an answer", v.served)
	if v.failed > 0 {
		fmt.Fprintf(w, ", %d had none and may have been served", v.failed)
	}
	fmt.Fprintf(w, "\ncounted  %d by the group in %d intervals, added up from Redis", v.counted, v.intervals)
	if v.missed > 0 {
		fmt.Fprintf(w, "; %d more could not be read in time", v.missed)
	}
	fmt.Fprintf(w, "\nknown    %d of %d numbers that replicas showed are the group's\n", v.known-v.wrong, v.known)

	switch err := v.broken(); {
	case err != nil:
		fmt.Fprintf(w, "FAIL: %v.\n", err)
	case v.counted == v.served && v.failed == 0:
		fmt.Fprintln(w, "PASS: the group counted what was served, no more and no less.")
	case v.counted >= v.served:
		fmt.Fprintln(w, "PASS: the group counted no more than was served.")
	case v.missed > 0:
		fmt.Fprintf(w, "PASS: no more than was served; %d requests are not in what could be read.\n", v.served-v.counted)
	default:
		fmt.Fprintf(w, "PASS: no more than was served; %d requests are missing, see the replicas' log.\n", v.served-v.counted)
	}
}
