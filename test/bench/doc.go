// Package bench compares figures of ours with baselines and with goals, in one run
// on one machine, since figures of two runs cannot be compared.
//
//	make bench                  all
//	make bench ONLY=add         the groups of rows whose name matches
//
// prints one line for each row:
//
//	name                     ours  baseline  ratio   goal
//	add, serial            6.7 ns    3.9 ns   1.72   <= 2.5  ok
//
// The two sides of a row are measured in turn, a round each. The figures are the
// medians over the rounds, and the ratio is the median of the rounds' ratios, so that
// a disturbance which lasts for a round or two does not decide.
//
// In the ordinary tests each row but the slow ones runs once and briefly, so that it
// keeps working; its figures are not looked at then.
package bench
