package counter

import (
	"context"
	"time"
)

// Store is where the participants of a group meet. The one that [New] and
// [NewGroup] make from a Redis client is one implementation; [WithStore] takes
// any other.
//
// A Store is called from goroutines of the group's own, for each server at most
// two calls at a time. It must be safe for that. It may block: nothing on the
// counting path waits for it, and a call that takes longer than an interval is
// treated as one whose outcome is unknown; its answer, when it comes after all,
// is still used.
//
// # What a store must keep
//
// All decisions about time are the store's: an interval's number is
// n = floor(store's clock / interval), read once per share. Each share carries
// a sequence number. The store keeps one mark per participant, counter, batch
// and interval, for at least four intervals after the last write (one more for
// an interval that has not begun), and decides in this order:
//
//   - mark = Seq: [Repeated]. Nothing changes; the answer is that of an applied share.
//   - other mark > 0: [Used]. Nothing changes.
//   - mark < 0 and |mark| >= Seq: [Fenced]. Nothing changes.
//   - Interval = n, or Interval = n + 1 in mode [ModeAhead]: the amounts are added,
//     mark := Seq, [Applied].
//   - n > Interval + 1: [Late]. Nothing changes, and nothing is proven.
//   - otherwise mark := -Seq: [Refused].
//
// It applies a share whole or not at all, except that a series which fails on
// its own is left out and named in [Result.Failed].
type Store interface {
	// Server names the server that holds the keys of a counter. Counters on one
	// server share a flight; a server that stalls delays no other's. A store with
	// one server answers with one constant.
	Server(ctx context.Context, prefix, name string) (string, error)

	// Probe asks a server for its clock, and checks on the keys of the given
	// counter that what a flush needs is permitted, without writing anything.
	Probe(ctx context.Context, server, prefix, name string) (ServerTime, error)

	// Flush carries the shares to their server in one round trip and returns one
	// result per share, in their order. It must send each share at most once,
	// unless an answer proves that it was not applied, and must not keep
	// references to the flush after it has returned.
	Flush(ctx context.Context, flush *Flush) []Result
}

// ServerTime is a reading of a store's clock, in microseconds since the Unix
// epoch. It is a type of its own so that it never mixes with local time.
type ServerTime int64

// interval returns the number of the interval that holds t.
func (t ServerTime) interval(length time.Duration) int64 {
	return int64(t) / length.Microseconds()
}

// Flush is what one participant sends to one server in one round trip.
type Flush struct {
	Server      string
	Participant string        // 8 characters, new at every start of a process
	Interval    time.Duration // whole milliseconds
	Shares      []Share
}

// Mode says what a share may do.
type Mode uint8

// The modes of a share.
const (
	// ModeAdd adds to the declared interval if that is the running one.
	ModeAdd Mode = iota
	// ModeAhead adds to the declared interval if that is the running one or the next.
	ModeAhead
	// ModeRead adds nothing and leaves no mark. It answers Applied if the declared
	// interval is the running one, else Late, with the store's time.
	ModeRead
)

// Share is the part of one counter in a flush. A counter whose series do not
// fit into one share has several, told apart by Batch; a series always belongs
// to the same one.
type Share struct {
	Prefix, Name string
	Batch        int
	Interval     int64 // the declared interval N
	Seq          int64 // rises with every share that a participant sends, from 1
	Mode         Mode
	AskFirst     bool // ask to be told whether this is the first flush of the counter in N; only in ModeAdd

	Amount    int64      // for the counter's total: the sum of Amounts and what belongs to no series
	Series    []string   // canonical attribute sets
	Amounts   []int64    // one per series; 0 is only read
	Questions []Question // about shares of the same counter and batch whose outcome is unknown
}

// Question asks whether the share with this interval and sequence number was
// counted. It is answered only by shares that were applied or repeated.
type Question struct {
	Interval, Seq int64
}

// Outcome is what became of a share.
type Outcome uint8

// The outcomes of a share. The zero value is the one that promises nothing.
const (
	// Unknown: the share may or may not have been applied. It is set aside and
	// asked about, never sent again.
	Unknown Outcome = iota
	// Applied: the share was added, now.
	Applied
	// Repeated: the share had been added before; this call changed nothing.
	Repeated
	// Refused: the declared interval was not the running one. The refusal left a
	// fence: the share will never be applied.
	Refused
	// Used: the participant has added to that interval before, with another share.
	Used
	// Fenced: the share was refused before, and never will be applied.
	Fenced
	// Late: the declared interval is over by more than one; whether the share
	// was applied in its time cannot be told from this.
	Late
	// NotApplied: it is proven that the share was not applied and will not be;
	// Err says why. Its interval is still free.
	NotApplied
	// Lost: the share was applied in part and could not be taken back; Err says
	// why. Its amounts may have been counted.
	Lost
)

// Answer is the answer to a [Question].
type Answer uint8

// The answers to a question.
const (
	// StillOpen: the interval asked about is not over by the slack (a quarter of an
	// interval, at most 500 ms). Ask again.
	StillOpen Answer = iota
	// Counted: the share was added.
	Counted
	// NotCounted: the share was not added, and a fence keeps it so.
	NotCounted
	// Unknowable: the mark may have expired.
	Unknowable
)

// Result is the answer to one [Share].
type Result struct {
	Outcome Outcome
	Err     error      // why, for Unknown, NotApplied and Lost
	Time    ServerTime // the store's clock as the share was handled; 0 if not known
	Server  string     // where the counter lives now, if the flush went there by a detour; else ""

	// The totals, by the store's clock, where Outcome is Applied or Repeated.
	Known        bool    // the interval before the running one has a total
	Closed       int64   // that total
	Participants int64   // how many participants flushed in that interval
	Open         int64   // the running interval's total, after this share
	OpenKnown    bool    // that one exists
	First        bool    // the first of the askers in the declared interval
	SeriesClosed []int64 // the closed interval's parts, one per series; nil if Known is false

	Failed  []Failure // series that were left out
	Answers []Answer  // one per question; nil if none was answered
}

// Failure is a series of a share that was left out, and why.
type Failure struct {
	Index int // in Share.Series
	Err   error
}
