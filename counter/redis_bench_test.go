package counter_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter"
)

// BenchmarkStoreFlush is what a flush of so many series costs on our side. The
// server is a connection that answers from memory without allocating.
func BenchmarkStoreFlush(b *testing.B) {
	for _, series := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("series=", series), func(b *testing.B) {
			const perShare = 499
			flush := &counter.Flush{Participant: "alice--1", Interval: time.Second}
			for at := 0; at < series; at += perShare {
				share := counter.Share{Prefix: "bench:", Name: "http.requests", Batch: len(flush.Shares), Interval: 1_800_000_000, Seq: 1}
				for i := at; i < min(at+perShare, series); i++ {
					share.Series = append(share.Series, fmt.Sprintf(`http.route="/%d",http.status=200`, i))
					share.Amounts = append(share.Amounts, int64(i))
				}
				flush.Shares = append(flush.Shares, share)
			}
			canned := &cannedConn{}
			// All shares are as long as the first; the last one only in this benchmark.
			last := &flush.Shares[len(flush.Shares)-1]
			for len(last.Series) < len(flush.Shares[0].Series) {
				last.Series, last.Amounts = append(last.Series, fmt.Sprint(len(last.Series))), append(last.Amounts, 1)
			}
			canned.reply = []byte(reply("applied 123456 7890 0 - 42" + strings.Repeat(" 123456", len(last.Series))))
			client := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:1", PoolSize: 1, Protocol: 2,
				Dialer: func(context.Context, string, string) (net.Conn, error) { return canned, nil },
			})
			defer client.Close()
			store, err := counter.NewStore(client)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, result := range store.Flush(b.Context(), flush) {
					if result.Outcome != counter.Applied {
						b.Fatal(result.Err)
					}
				}
			}
		})
	}
}

// cannedConn answers every EVALSHA with the same reply, and all else with an error.
type cannedConn struct {
	reply   []byte
	tail    []byte // the end of the last write, less than the word looked for
	pending []byte
}

var (
	evalsha = []byte("\r\nevalsha\r\n")
	command = []byte("*")
	refused = []byte("-ERR unknown command\r\n")
)

func (c *cannedConn) Write(b []byte) (int, error) {
	// A word may be split between two writes.
	start := b[:min(len(b), len(evalsha)-1)]
	c.tail = append(c.tail, start...)
	calls := bytes.Count(c.tail, evalsha) + bytes.Count(b, evalsha) - bytes.Count(start, evalsha)
	c.tail = append(c.tail[:0], b[max(0, len(b)-len(evalsha)+1):]...)
	for range calls {
		c.pending = append(c.pending, c.reply...)
	}
	if calls == 0 && (bytes.Contains(b, []byte("hello")) || bytes.Contains(b, []byte("client"))) {
		for range bytes.Count(b, command) {
			c.pending = append(c.pending, refused...)
		}
	}
	return len(b), nil
}

func (c *cannedConn) Read(b []byte) (int, error) {
	if len(c.pending) == 0 {
		return 0, fmt.Errorf("read without a command")
	}
	n := copy(b, c.pending)
	c.pending = c.pending[:copy(c.pending, c.pending[n:])]
	return n, nil
}

func (*cannedConn) Close() error                     { return nil }
func (*cannedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*cannedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*cannedConn) SetDeadline(time.Time) error      { return nil }
func (*cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (*cannedConn) SetWriteDeadline(time.Time) error { return nil }
