package counter

import (
	"maps"
	"time"

	"github.com/stretchr/testify/require"
)

// replica is what a server had written at some time, as another one has it.
type replica struct {
	at      time.Time // by the server's clock
	texts   map[string]string
	hashes  map[string]map[string]string
	lives   map[string]time.Duration
	applied map[string]int
}

// replicate copies what the server holds.
func (n *network) replicate(t require.TestingT) *replica {
	n.mini.SetTime(n.now())
	r := &replica{
		at: n.now(), texts: map[string]string{}, hashes: map[string]map[string]string{}, lives: map[string]time.Duration{},
	}
	for _, key := range n.mini.Keys() {
		r.lives[key] = n.mini.TTL(key)
		if n.mini.Type(key) == "string" {
			value, err := n.mini.Get(key)
			require.NoError(t, err)
			r.texts[key] = value
			continue
		}
		fields, err := n.mini.HKeys(key)
		require.NoError(t, err)
		r.hashes[key] = map[string]string{}
		for _, field := range fields {
			r.hashes[key][field] = n.mini.HGet(key, field)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r.applied = maps.Clone(n.applied)
	return r
}

// failover puts a replica in the server's place, with a clock that is behind by so
// much. What the server has written since is lost, and connections break. It returns
// how much less the totals hold.
func (n *network) failover(t require.TestingT, r *replica, behind time.Duration) (lost map[string]int64) {
	n.stop()
	n.mini.SetTime(n.now())
	before := n.mini.Keys()
	n.mini.FlushAll()
	for key, value := range r.texts {
		require.NoError(t, n.mini.Set(key, value))
	}
	for key, fields := range r.hashes {
		for field, value := range fields {
			n.mini.HSet(key, field, value)
		}
	}
	gone := n.now().Sub(r.at)
	for key, life := range r.lives {
		if life -= gone; life > 0 {
			n.mini.SetTTL(key, life)
		} else {
			n.mini.Del(key)
		}
	}
	lost = map[string]int64{}
	n.mu.Lock()
	for _, key := range before {
		had, ok := n.totals[key]
		if !ok {
			continue
		}
		var has int64
		if value, err := n.mini.Get(key); err == nil {
			has = parseTotal(value)
		}
		lost[key] = had - has
		n.totals[key] = has
	}
	n.applied = maps.Clone(r.applied)
	n.mu.Unlock()
	n.step(-behind)
	n.start(t)
	return lost
}
