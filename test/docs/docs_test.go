package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

const root = "../.."

// documents are all texts of the repository, by their path from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := exec.Command("git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		redistest.Missing(t, "a git checkout, and git")
	}
	texts := map[string]string{}
	for path := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		texts[path] = string(text)
	}
	require.Contains(t, texts, "README.md")
	return texts
}

var command = regexp.MustCompile(`go test (\./\S+).* -(?:run|bench) '?([\w|]+)'?`)

// A pattern that matches no test passes: it proves nothing.
func TestCommandsOfDocumentsRunTests(t *testing.T) {
	tests := map[string]string{} // by package, a name in a line
	found := 0
	for path, text := range documents(t) {
		for _, c := range command.FindAllStringSubmatch(text, -1) {
			dir, pattern := c[1], c[2]
			if pattern == "TestName" {
				continue // stands for any
			}
			if _, ok := tests[dir]; !ok {
				list := exec.Command("go", "test", "-list", ".", dir)
				list.Dir = root
				out, err := list.CombinedOutput()
				require.NoError(t, err, "%s: %s: %s", path, c[0], out)
				tests[dir] = string(out)
			}
			for name := range strings.SplitSeq(pattern, "|") {
				assert.Regexp(t, `(?m)^\w*`+name+`\w*$`, tests[dir],
					"%s: %s: no test has a name with %s", path, c[0], name)
				found++
			}
		}
	}
	assert.Greater(t, found, 10, "the commands of README.md are not among what was found")
}

var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)

func TestLinksOfDocumentsLead(t *testing.T) {
	found := 0
	for path, text := range documents(t) {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(filepath.Join(root, filepath.Dir(path), l[1]))
			require.NoError(t, err, "%s links to it", path)
			found++
		}
	}
	assert.Positive(t, found)
}

// Counts that several masters merge diverge for good. Whoever has such a store must
// read that it is none for these counters.
func TestB58_DocumentsNameActiveActiveStoresAsUnsupported(t *testing.T) {
	for _, path := range []string{"README.md", "counter/doc.go", "counter/exact/doc.go"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		assert.Regexp(t, `(?i)active-active`, string(text), path)
	}
}

// Each sentence of the contract is quoted above a test that fails when it is broken.
// That it fails is for who writes the test to see; that it is there can be checked.
func TestEachSentenceOfTheContractIsQuotedByATest(t *testing.T) {
	design, err := os.ReadFile(filepath.Join(root, "DESIGN.md"))
	require.NoError(t, err)
	_, contract, ok := strings.Cut(string(design), "## 2. The promise, in the order in which it binds\n")
	require.True(t, ok)
	contract, _, ok = strings.Cut(contract, "\n## 3.")
	require.True(t, ok)
	contract = regexp.MustCompile(`(?m)^\d+\. `).ReplaceAllString(contract, "") // numbers of rules

	var quotes strings.Builder
	for _, dir := range []string{"counter", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//"); ok {
					quotes.WriteString(comment + " ")
				}
			}
			return err
		})
		require.NoError(t, err)
	}
	said := plain(quotes.String())
	sentences := regexp.MustCompile(`[.:;)] `).Split(plain(contract), -1)
	require.Greater(t, len(sentences), 100)
	for _, s := range sentences {
		if s = strings.Trim(s, " .:;()"); !strings.Contains(said, s) {
			t.Errorf("no test quotes %q", s)
		}
	}
}

// plain is a text without line breaks and marks of style.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("*", "", "`", "").Replace(text)), " ")
}
