package comcountexporter

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func TestREADMENamesEachKey(t *testing.T) {
	for _, key := range otlptest.Keys(&Config{}) {
		assert.Contains(t, read(t, "README.md"), "`"+strings.TrimPrefix(key, "redis::")+"`")
	}
}

func TestREADMEsConfigurationIsValid(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, "README.md"))
	require.NotNil(t, block)
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block[1]), &raw))
	sub, err := confmap.NewFromStringMap(raw).Sub("exporters::comcount")
	require.NoError(t, err)
	cfg := createDefaultConfig()
	require.NoError(t, sub.Unmarshal(&cfg))
	require.NoError(t, confmap.Validate(cfg))
}

func TestEachReasonIsDocumented(t *testing.T) {
	for r := drop.None + 1; r < drop.Count; r++ {
		assert.Contains(t, read(t, "documentation.md"), "| `"+r.String()+"` |")
		assert.Contains(t, read(t, "metadata.yaml"), "      - "+r.String()+"\n")
	}
}
