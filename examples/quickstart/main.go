// Quickstart shows the main job of otelcomcount: replicas of a service count for
// themselves, and every one of them knows the number of the whole group.
//
//	go run ./examples/quickstart
//
// It starts a small Redis inside itself (or uses the one at REDIS_URL) and three
// replicas of an HTTP service as processes of their own, sends them requests at
// uneven rates, and shows what each replica knows. At the end it checks that
// the group counted no more than was served, and exits with 1 if it counted more.
//
// Read replica.go first: it is all that a service does. The other files are the
// stage around it: fleet.go starts the replicas, traffic.go sends the requests,
// table.go shows the numbers, audit.go reads them from Redis, and verdict.go
// compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type config struct {
	length   time.Duration // of the show
	replicas int
	interval time.Duration // how often each replica meets the others
	mistake  bool          // have one replica count twice
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == replicaArg {
		exit("quickstart replica", runReplica(os.Args[2:]))
	}
	cfg, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2) // the flag package has said why
	}
	exit("quickstart", run(cfg, os.Stdout))
}

func exit(who string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func parse(args []string) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	seconds := flags.Int("seconds", 15, "how long to run")
	flags.IntVar(&cfg.replicas, "replicas", 3, "how many replicas to start, 1 to 12")
	flags.DurationVar(&cfg.interval, "interval", time.Second, "how often the replicas tell each other, in whole milliseconds from 10ms")
	flags.BoolVar(&cfg.mistake, "mistake", false, "install one replica's counting middleware twice, to see the check fail")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.length = time.Duration(*seconds) * time.Second

	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("quickstart takes flags only, not %q", flags.Arg(0))
	case *seconds < 1:
		err = errors.New("-seconds must be at least 1")
	case cfg.replicas < 1 || cfg.replicas > 12:
		err = errors.New("-replicas must be 1 to 12")
	case cfg.interval < 10*time.Millisecond || cfg.interval%time.Millisecond != 0:
		err = errors.New("-interval must be at least 10ms, in whole milliseconds")
	}
	if err != nil {
		fmt.Fprintln(flags.Output(), err)
		flags.Usage()
	}
	return cfg, err
}

// run is the whole show, in the order in which things happen.
func run(cfg config, out *os.File) error {
	// The first Ctrl-C ends the show as its time does: the replicas part in good
	// order, and the verdict is given. The second one ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.close()

	service := newService()
	audit, err := newAudit(ctx, server.client, service.key(instrument), cfg.interval)
	if err != nil {
		return err
	}
	table := newTable(out, cfg.replicas, audit.next)
	table.title(cfg, server.where, service.key(instrument))
	fleet, err := startFleet(ctx, cfg, server.url, service, table)
	if err != nil {
		return err
	}
	defer fleet.kill()

	known := newReadings(cfg.replicas)
	begin := time.Now()
	ctx, end := context.WithTimeout(ctx, cfg.length)
	defer end()
	audit.start()
	sent := startTraffic(ctx, fleet)
	known.follow(ctx, fleet, cfg.interval, func() {
		table.show(known, fmt.Sprintf("%.0f s of %.0f s, %d requests answered; Ctrl-C ends it",
			time.Since(begin).Seconds(), cfg.length.Seconds(), sent.answered.Load()))
	})
	sent.wait()
	table.end()
	err = errors.Join(fleet.stop(), audit.finish())

	verdict := judge(sent, audit, known)
	verdict.print(out)
	if verdict.broken() != nil {
		err = errors.Join(err, errors.New("the check has failed"))
	}
	return err
}
