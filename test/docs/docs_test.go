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
)

const root = "../.."

// documents are all texts of the repository, by their path from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := exec.Command("git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("not a git checkout: ", err)
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
