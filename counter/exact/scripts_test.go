package exact

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The sum is written twice, and both must be exact where Lua's numbers are not.
func TestLuaIsExact(t *testing.T) {
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	shared := redis.NewScript(countLua + `return sum(ARGV[1], ARGV[2]) .. ' ' .. tostring(at_most(ARGV[1], ARGV[2]))`)
	counters, err := Open(client, "n", Max(math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := amount(rt, "a"), amount(rt, "b")
		sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		got, err := shared.Run(t.Context(), client, nil, strconv.FormatInt(a, 10), strconv.FormatInt(b, 10)).Text()
		if want := fmt.Sprintf("%v %v", sum, a <= b); err != nil || got != want {
			rt.Log(a, b, got, err)
			rt.Fatal("count.lua is wrong")
		}

		_ = m.Set("n:{k}", strconv.FormatInt(a, 10))
		count, err := counters.Add(t.Context(), "k", b)
		if fits := sum.IsInt64(); fits != (err == nil) || fits && count != sum.Int64() || !fits && count != a {
			rt.Log(a, b, count, err)
			rt.Fatal("add.lua is wrong")
		}
	})
}

// amount is often near the joints: 15 digits, 2^53, half of int64.
func amount(t *rapid.T, label string) int64 {
	joint := rapid.SampledFrom([]int64{-1, 1e15, 1 << 53, 1e16, 1 << 62, math.MaxInt64 - 20}).Draw(t, "joint of "+label)
	if joint < 0 {
		return rapid.Int64Range(1, math.MaxInt64).Draw(t, label)
	}
	return joint + rapid.Int64Range(-3, 20).Draw(t, label)
}
