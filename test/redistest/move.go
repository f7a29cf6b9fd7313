package redistest

// Move is a slot on its way from one master to another. Begin it, look at what
// happens in between, then Finish it.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to int
}

// BeginMove sets the slot of key IMPORTING on node to, and MIGRATING on the node
// that holds it. No key is moved yet: the old node serves the keys that it has and
// answers ASK for others.
func (c *Cluster) BeginMove(key string, to int) *Move {
	c.tb.Helper()
	m := &Move{cluster: c, slot: c.Slot(key), from: c.Owner(key), to: to}
	if m.from == to {
		c.tb.Fatalf("slot %d is on node %d already", m.slot, to)
	}
	m.setSlot(to, "IMPORTING", m.from)
	m.setSlot(m.from, "MIGRATING", to)
	return m
}

// Keys moves keys of the slot to the new node.
func (m *Move) Keys(keys ...string) {
	m.cluster.tb.Helper()
	if len(keys) == 0 {
		return
	}
	to := m.cluster.Nodes[m.to]
	args := []any{"MIGRATE", "127.0.0.1", to.port, "", 0, startTimeout.Milliseconds(), "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	m.cluster.must(m.cluster.Nodes[m.from].client.Do(m.cluster.tb.Context(), args...).Err())
}

// Finish moves the keys that are left, gives the slot to the new node, and waits
// until all nodes know.
func (m *Move) Finish() {
	c := m.cluster
	c.tb.Helper()
	for {
		keys, err := c.Nodes[m.from].client.ClusterGetKeysInSlot(c.tb.Context(), m.slot, 1000).Result()
		c.must(err)
		if len(keys) == 0 {
			break
		}
		m.Keys(keys...)
	}
	// The new owner first: were it the last to know, two nodes could redirect to
	// each other.
	m.setSlot(m.to, "NODE", m.to)
	m.setSlot(m.from, "NODE", m.to)
	c.owners[m.slot] = m.to
	c.await()
}

func (m *Move) setSlot(on int, state string, node int) {
	c := m.cluster
	c.tb.Helper()
	c.must(c.Nodes[on].client.Do(c.tb.Context(),
		"CLUSTER", "SETSLOT", m.slot, state, c.Nodes[node].id).Err())
}
