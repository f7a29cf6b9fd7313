// Package engine is what the processor and the exporter share: it counts the data
// points that pass through the instances of a component, and hands the group's
// totals to whoever passes them on.
//
// One [Engine] stands for one component id in a Collector, whatever number of
// pipelines it is in. Each pipeline's instance is a [Member]. The way of data:
//
//	Member.Extract   reads a batch: which counter each point belongs to, and what it says
//	Batch.Commit     once the batch is accepted: cumulative values become amounts,
//	                 amounts are added to the group's counters
//	counter.Group    flushes once an interval
//	emission         from the group's ticks: totals become gauges, and go downstream
//
// Nothing on the first two steps waits for anything.
package engine
