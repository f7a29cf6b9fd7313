package counter

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

func NewStore(rdb redis.UniversalClient) (Store, error) { return nil, errors.New("stub") }

type evictionPolicy interface {
	EvictionPolicy(ctx context.Context, server string) (string, error)
}
