// Package feed brings what an OpenTelemetry SDK collected into a group of
// counters. The reader and the exporter are two ways to get at the collected
// data; all that comes after is here.
//
//   - [Feed.Take] adds the monotonic sums of a collection to the counters of
//     their names and attribute sets, as the sums themselves (delta) or as what
//     they rose by (cumulative).
//   - [Feed.Total] and [Feed.Watch] find a counter by its instrument's name, also
//     before there is one.
//   - [Feed.Instruments] is what gauges are made from.
//
// Nothing here waits for Redis, except Flush and Shutdown.
package feed
