package counter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Part is what the group counted with one attribute set in one interval.
type Part struct {
	Attributes attribute.Set
	Value      int64 // in units of [Resolution] for a float counter
}

// partsReader is what a [Store] may offer beside its duties.
type partsReader interface {
	// Parts returns at most limit parts of a counter's total of an interval, in no
	// order. It must not return one attribute set twice.
	Parts(ctx context.Context, prefix, name string, interval int64, limit int) ([]Part, error)
}

// Parts reads the parts of the group's total of an interval, whoever counted them:
// at most limit, in no order. What was counted without attributes is in no part.
// Of an interval that has closed ([Total.Interval]) they are final, and their sum
// is at most its total. They can be read for about two intervals longer; then
// there are none.
//
// It asks the server and waits for the answer; the group's ticks do not wait for
// it. It works after Close too. Parts that this version cannot read are left out.
// A Redis user needs the right to run HSCAN. The parts of a part are those of its
// grand total. A Store that cannot read parts makes an error.
func (c *Counter) Parts(ctx context.Context, interval int64, limit int) ([]Part, error) {
	store, ok := c.group.store.(partsReader)
	if !ok {
		return nil, errors.New("counter: the store cannot read the parts of a total")
	}
	return store.Parts(ctx, c.key.prefix, c.key.name, interval, limit)
}

// Parts implements [partsReader].
func (s *redisStore) Parts(ctx context.Context, prefix, name string, interval int64, limit int) ([]Part, error) {
	const page = 500 // fields that the server reads at a time
	key := partsKey(prefix, name, interval)
	var parts []Part
	seen := map[string]bool{} // a scan may meet a field twice
	for cursor := uint64(0); len(parts) < limit; {
		pairs, next, err := s.rdb.HScan(ctx, key, cursor, "*", page).Result()
		if err != nil {
			return nil, fmt.Errorf("counter: the parts of counter %q cannot be read: %w", name, err)
		}
		for i := 0; i+1 < len(pairs) && len(parts) < limit; i += 2 {
			part, ok := readPart(pairs[i], pairs[i+1])
			if ok && !seen[pairs[i]] {
				seen[pairs[i]] = true
				parts = append(parts, part)
			}
		}
		if next == 0 {
			break
		}
		cursor = next
	}
	return parts, nil
}

// readPart reads a field of the hash. Those that begin with a reserved character
// are not parts.
func readPart(field, value string) (Part, bool) {
	if field != "" && strings.Contains("#!@", field[:1]) {
		return Part{}, false
	}
	set, err := decodeSet(field)
	if err != nil {
		return Part{}, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return Part{Attributes: set, Value: n}, err == nil
}
