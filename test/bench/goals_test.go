package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

var (
	goals  = flag.Bool("goals", false, "measure, and print figures beside baselines and goals")
	rounds = flag.Int("rounds", 5, "how often each side of a row is measured")
	strict = flag.Bool("strict", false, "fail if a row falls short of its goal")
)

func TestMain(m *testing.M) {
	flag.Parse()
	logging.Disable() // what go-redis logs of a server that is not there on purpose
	if !*goals {
		// Once each, to see that it works.
		if err := flag.Set("test.benchtime", "1x"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// groups lists what `make bench` compares. Each group is in a file of its own.
func groups() []Group {
	return []Group{
		{Name: "add", Rows: counterRows},
		{Name: "flush", Rows: flushRows},
		{Name: "exact", Rows: exactRows},
		{Name: "sdk", Rows: sdkRows},
		{Name: "coverage", Rows: coverageRows},
		{Name: "otelcol", Rows: otelcolRows},
	}
}

func TestGoals(t *testing.T) {
	if *goals {
		Header(os.Stdout)
	}
	for _, group := range groups() {
		t.Run(group.Name, func(t *testing.T) {
			if !*goals {
				try(t, group.Rows(t))
				return
			}
			if short := Run(t, os.Stdout, *rounds, group.Rows(t)); *strict && len(short) > 0 {
				t.Errorf("short of their goals: %q", short)
			}
		})
	}
}

// try runs each row once, briefly.
func try(t *testing.T, rows []Row) {
	t.Helper()
	for _, row := range rows {
		if !row.Slow {
			Run(t, io.Discard, 1, []Row{row})
		}
	}
}
