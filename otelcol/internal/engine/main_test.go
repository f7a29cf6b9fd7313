package engine

import (
	"testing"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
