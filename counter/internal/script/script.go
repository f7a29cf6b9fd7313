package script

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script, not a protection
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that Redis caches by its SHA-1. It is immutable and safe
// for concurrent use.
type Script struct {
	source, sha string
}

// New returns the script with this source.
func New(source string) *Script {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Source returns the text of the script.
func (s *Script) Source() string { return s.source }

// SHA returns the SHA-1 of the source in hexadecimal.
func (s *Script) SHA() string { return s.sha }

// EvalSha returns the command that runs the cached script. It refers to keys and
// args until it has run; pointers such as *string spare an allocation per
// argument.
func (s *Script) EvalSha(ctx context.Context, keys []string, args ...any) *Cmd {
	return build(ctx, "evalsha", s.sha, keys, args)
}

// Eval returns the command that sends the source along, runs it and caches it.
// Otherwise it is like EvalSha.
func (s *Script) Eval(ctx context.Context, keys []string, args ...any) *Cmd {
	return build(ctx, "eval", s.source, keys, args)
}

func build(ctx context.Context, name, script string, keys []string, args []any) *Cmd {
	argv := make([]any, 3, 3+len(keys)+len(args))
	argv[0], argv[1], argv[2] = name, script, len(keys)
	for i := range keys {
		argv = append(argv, &keys[i])
	}
	return newCmd(ctx, append(argv, args...))
}

// again returns the same call once more, by another name.
func (s *Script) again(ctx context.Context, cmd *Cmd, name, script string) *Cmd {
	argv := append([]any(nil), cmd.Cmd.Args()...)
	argv[0], argv[1] = name, script
	return newCmd(ctx, argv)
}

// Processor is the part of a client that runs one command.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Run runs the script with these keys and arguments, see [Script.Send].
func (s *Script) Run(ctx context.Context, c Processor, keys []string, args ...any) *Cmd {
	return s.Send(ctx, c, s.EvalSha(ctx, keys, args...))
}

// Send runs a command made by [Script.EvalSha], and only if the server answers
// NOSCRIPT, which proves that it did not run, once more as EVAL. It returns the
// command that decided; its outcome is in [Cmd.Reply] and [Cmd.NotExecuted].
func (s *Script) Send(ctx context.Context, c Processor, cmd *Cmd) *Cmd {
	_ = c.Process(ctx, cmd) // the error is the command's too
	if noScript(cmd) {
		cmd = s.again(ctx, cmd, "eval", s.source)
		_ = c.Process(ctx, cmd)
	}
	return cmd
}

// Pipeliner is the part of a client that makes a pipeline.
type Pipeliner interface {
	Pipeline() redis.Pipeliner
}

// RunAll runs commands made by [Script.EvalSha] in one pipeline, and again those
// that a server answered with NOSCRIPT, until it has the script. In place of such
// a command its successor is stored in cmds.
func (s *Script) RunAll(ctx context.Context, c Pipeliner, cmds []*Cmd) {
	pipe := c.Pipeline()
	exec(ctx, pipe, cmds)

	// At first one command takes the source along: a server runs a pipeline in
	// order, so the others find it cached, and thousands of calls do not carry it
	// each. In a cluster that may leave servers without it, so more and more do.
	for carriers := 1; ; carriers *= 4 {
		var again []*Cmd
		for i, cmd := range cmds {
			if !noScript(cmd) {
				continue
			}
			if len(again) < carriers {
				cmds[i] = s.again(ctx, cmd, "eval", s.source)
			} else {
				cmds[i] = s.again(ctx, cmd, "evalsha", s.sha)
			}
			again = append(again, cmds[i])
		}
		if len(again) == 0 {
			return
		}
		exec(ctx, pipe, again)
		if len(again) <= carriers {
			return
		}
	}
}

func exec(ctx context.Context, pipe redis.Pipeliner, cmds []*Cmd) {
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // only queues
	}
	_, _ = pipe.Exec(ctx) // the errors are the commands' too
}

// noScript reports whether the server said that it does not know the script.
func noScript(cmd *Cmd) bool {
	return cmd.NotExecuted() && redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT ")
}
