package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// columns is the width of the table; a line that a terminal wraps cannot be
	// redrawn in place.
	columns = 79
	// frameLines is how many lines a frame has besides one for each replica: the
	// head, a blank one, the sum and the footer.
	frameLines = 4
)

// table shows what the replicas know: on a terminal redrawn in place, else as a
// line for each interval.
type table struct {
	out   *os.File
	live  bool
	first int64 // the interval in which the show begins; people count from 1
	last  int64 // the last interval that was printed as a line

	mu    sync.Mutex // the replicas' logs come at any time
	lines int        // of the frame that stands on the terminal
}

func newTable(out *os.File, replicas int, first int64) *table {
	width, height, err := term.GetSize(int(out.Fd()))
	fits := err == nil && width > columns && height > replicas+frameLines
	return &table{out: out, live: fits && os.Getenv("TERM") != "dumb", first: first}
}

func (t *table) title(cfg config, where, key string) {
	fmt.Fprintf(t.out, `otelcomcount quickstart: %d replicas of a service meet every %v in Redis
at %s, keys %sN
own    counted by this replica in the last closed interval
group  by all replicas in it, as this one knows by a call that sends nothing
gauge  the same, as this replica exports it under %s
age    how long ago the number came

`, cfg.replicas, cfg.interval, where, key, gaugeName)
}

// show brings the table up to date.
func (t *table) show(r *readings, footer string) {
	if t.live {
		t.redraw(append(t.frame(r), footer))
		return
	}
	if r.complete > t.last {
		t.last = r.complete
		fmt.Fprintln(t.out, t.line(r.complete, r.byInterval[r.complete]))
	}
}

// end says what happens once the requests have stopped.
func (t *table) end() {
	if t.live {
		fmt.Fprint(t.out, "\r\x1b[K") // over the ^C that a terminal echoes
	}
	fmt.Fprintln(t.out, "Ending: each replica hands in what it has counted since its last flush.")
}

// redraw puts a frame in the place of the last one.
func (t *table) redraw(frame []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	b.WriteString(t.back())
	for _, line := range frame {
		fmt.Fprintf(&b, "%.*s\x1b[K\n", columns, line)
	}
	t.lines = len(frame)
	_, _ = t.out.WriteString(b.String())
}

// Write takes what the replicas log, and keeps it above the table.
func (t *table) Write(log []byte) (int, error) {
	if !t.live {
		return os.Stderr.Write(log)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.out.WriteString(t.back() + "\x1b[J")
	t.lines = 0
	return t.out.Write(log)
}

// back moves the cursor to where the frame begins.
func (t *table) back() string {
	if t.lines == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", t.lines)
}

// frame is the table for a terminal, without its footer.
func (t *table) frame(r *readings) []string {
	frame := []string{row("replica", "interval", "own", "", "group", "gauge", "participants", "age")}
	for i, s := range r.latest {
		line := row(num(i+1), "-", "-", "", "-", s.gauge(), "-", "-")
		if s.Known {
			bar := strings.Repeat("█", int(18*s.Own/max(s.Group, 1)))
			line = row(num(i+1), num(s.Interval-t.first+1), s.own(), bar, s.group(), s.gauge(), s.participants(), s.age())
		}
		frame = append(frame, line)
	}
	sum := "no interval is closed yet"
	if r.complete > 0 {
		sum = t.sum(r.complete, r.byInterval[r.complete])
	}
	return append(frame, "", sum)
}

func row(replica, interval, own, bar, group, gauge, participants, age string) string {
	return fmt.Sprintf("%-7s %8s %6s %-18s %6s %6s %13s %7s", replica, interval, own, bar, group, gauge, participants, age)
}

// sum sets the replicas' own numbers beside what they know of the group's.
func (t *table) sum(interval int64, all []status) string {
	var sum int64
	for _, s := range all {
		sum += s.Own
	}
	end := ", and each of them knows it"
	if slices.ContainsFunc(all, func(s status) bool { return s.Group != sum }) {
		end = ", and they know of " + join(all, ", ", status.group)
	}
	begin := fmt.Sprintf("interval %d: ", interval-t.first+1)
	text := fmt.Sprintf("%s%s = %d%s", begin, join(all, " + ", status.own), sum, end)
	if utf8.RuneCountInString(text) > columns {
		text = fmt.Sprintf("%sthe replicas counted %d%s", begin, sum, end)
	}
	return text
}

// line is one interval, for a log.
func (t *table) line(interval int64, all []status) string {
	return fmt.Sprintf("interval %d: own %s, group %s, gauge %s, participants %s, age %s", interval-t.first+1,
		join(all, " ", status.own), join(all, " ", status.group), join(all, " ", status.gauge),
		join(all, " ", status.participants), join(all, " ", status.age))
}

func join(all []status, separator string, text func(status) string) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = text(s)
	}
	return strings.Join(texts, separator)
}

func num[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
