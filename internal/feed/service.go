package feed

import (
	"strings"

	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/otelcomcount/otelcomcount/counter"
)

// unknownService is what the SDK calls a service that has no name, with the
// program's name after it.
const unknownService = "unknown_service"

// join finds the group that a resource's amounts belong to. It reports whether
// they do belong to this feed's.
func (f *Feed) join(res *resource.Resource) bool {
	if f.group != nil && (f.config.Group != nil || res == f.resource) {
		return true
	}
	prefix, named := prefixOf(res)
	if f.group == nil {
		if !named {
			f.report.nameless(prefix)
		}
		f.enter(prefix)
	}
	if prefix != f.prefix {
		f.report.foreign(f.prefix, prefix)
		return false
	}
	f.resource = res
	return true
}

// enter makes the feed's counters those of a prefix.
func (f *Feed) enter(prefix string) {
	group, err := f.base.WithPrefix(prefix)
	if err != nil { // GroupName makes valid prefixes only
		f.report.refused(prefix, err.Error())
		return
	}
	f.group, f.prefix = group, prefix
}

// prefixOf returns the prefix of a resource's service, and whether it has a name.
func prefixOf(res *resource.Resource) (prefix string, named bool) {
	var namespace, name string
	for _, kv := range res.Attributes() {
		switch kv.Key {
		case "service.namespace":
			namespace = kv.Value.String()
		case "service.name":
			name = kv.Value.String()
		}
	}
	if name == "" {
		name = unknownService
	}
	return counter.GroupName(namespace, name), !strings.HasPrefix(name, unknownService)
}
