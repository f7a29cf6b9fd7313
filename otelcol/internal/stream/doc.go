// Package stream turns the cumulative values of senders into what they count.
//
// A stream is what one sender reports of one metric and attribute set. Its points
// carry a start time, a time, and the value that has been reached since the start.
// What counts is a lower bound of what was added since the last point that was
// used, by these rules, in their order:
//
//   - The first point of a stream, and the first one after max_staleness of
//     silence, is a baseline: it counts nothing (see [Initial] for other policies).
//   - A point with an older start is ignored: it is a late one of a process that has
//     gone, or of another process under the same identity.
//   - A newer start that lies before the last point's time overlaps with it: it is
//     another writer's, or was corrected. The point is a new baseline. So is one whose
//     start is its own time, which says that the true start is not known.
//   - Any other newer start is a restart. A value lower than the last one counts
//     whole. If it is not lower, the sender may also be one that moves its start with
//     every point; then what it rose by counts, a lower bound in both cases.
//   - With the same start, a point that is not newer is ignored; a later one contains
//     it.
//   - With the same start, a value that fell is a new baseline.
//   - After a second fall within ten points, as several writers make them, nothing
//     counts until the value has not fallen for ten points.
//   - Otherwise what the value rose by counts.
//
// Points that are ignored do not keep a stream from going stale.
//
// What these rules cannot see: writers under one identity whose start times are
// equal or missing (until the value has fallen twice, differences between them
// count), and a point that comes later than max_staleness, when its stream has
// been forgotten.
package stream
