package counter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/counter/internal/resptest"
)

// scanned is a counter on a server that answers HSCAN with these pages.
func scanned(t *testing.T, pages ...[]string) (*counter.Counter, *[][]string) {
	t.Helper()
	var asked [][]string
	server := resptest.New(func(args []string) string {
		asked = append(asked, args)
		page := len(asked) - 1
		if page >= len(pages) {
			return "-ERR no more pages\r\n"
		}
		next := "0"
		if page+1 < len(pages) {
			next = fmt.Sprint(page + 1)
		}
		var fields []string
		for _, f := range pages[page] {
			fields = append(fields, resptest.Bulk(f))
		}
		return resptest.Array(resptest.Bulk(next), resptest.Array(fields...))
	})
	client := redis.NewClient(server.Options())
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
	})
	c, err := counter.New(client, "n", time.Second, counter.WithPrefix("p:"))
	require.NoError(t, err)
	return c, &asked
}

func TestPartsAreThoseOfAllParticipants(t *testing.T) {
	c, asked := scanned(t,
		[]string{"#", "3", "!", "alice--1", "@alice--1.0", "7", `k="a"`, "4"},
		[]string{`k="a"`, "4", `k=1,l=["x"]`, "-2", "@bob----1.0", "-3"},
	)
	parts, err := c.Parts(t.Context(), 17, 10)
	require.NoError(t, err)
	assert.Equal(t, []counter.Part{
		{Attributes: attribute.NewSet(attribute.String("k", "a")), Value: 4},
		{Attributes: attribute.NewSet(attribute.Int("k", 1), attribute.StringSlice("l", []string{"x"})), Value: -2},
	}, parts)
	assert.Equal(t, []string{"hscan", "p:{n}:17:by", "0", "match", "*", "count", "500"}, (*asked)[0])
}

func TestPartsThatCannotBeReadAreLeftOut(t *testing.T) {
	c, _ := scanned(t, []string{"what", "1", "k=1", "many", "k=2", "2", "", "5"})
	parts, err := c.Parts(t.Context(), 1, 10)
	require.NoError(t, err)
	assert.Equal(t, []counter.Part{
		{Attributes: attribute.NewSet(attribute.Int("k", 2)), Value: 2},
		{Attributes: attribute.NewSet(), Value: 5},
	}, parts)
}

func TestPartsStopAtTheLimit(t *testing.T) {
	c, asked := scanned(t, []string{"k=1", "1", "k=2", "2"}, []string{"k=3", "3", "k=4", "4"}, []string{"k=5", "5"})
	parts, err := c.Parts(t.Context(), 1, 3)
	require.NoError(t, err)
	assert.Len(t, parts, 3)
	assert.Len(t, *asked, 2)

	parts, err = c.Parts(t.Context(), 1, 0)
	require.NoError(t, err)
	assert.Empty(t, parts)
}

func TestPartsReportErrors(t *testing.T) {
	c, _ := scanned(t)
	_, err := c.Parts(t.Context(), 1, 3)
	require.ErrorContains(t, err, "no more pages")

	other, err := counter.New(nil, "n", time.Second, counter.WithStore(noParts{}))
	require.NoError(t, err)
	_, err = other.Parts(t.Context(), 1, 3)
	require.ErrorContains(t, err, "cannot read the parts")
}

// noParts is a store that does nothing.
type noParts struct{ counter.Store }

func (noParts) Server(context.Context, string, string) (string, error) { return "", nil }
