package exact

import "strings"

// keys makes the names of a counter's keys in Redis:
//
//	prefix name:{key}              the count
//	prefix name:{key}:id:<id>      what an add with this id did
//	prefix name:{key}:w:<writer>   the last batch of a writer
//
// The hash tag is exactly the key, so that all of a key's share a slot and the
// keys of a counter spread over a cluster. With braces escaped no two keys or ids
// collide, and none has the form of a group counter's key, "prefix{name}:N" or
// "prefix{name}:N:by".
type keys struct {
	head string // prefix name:{
}

func newKeys(prefix, name string) keys {
	return keys{head: prefix + name + ":{"}
}

func (k keys) count(key string) string {
	return k.head + escape(key) + "}"
}

func idKey(count, id string) string {
	return count + ":id:" + escape(id)
}

func markerKey(count, writer string) string {
	return count + ":w:" + writer
}

// escape is injective. Strings without braces and percent signs stay as they are.
func escape(s string) string {
	if !strings.ContainsAny(s, "%{}") {
		return s
	}
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(s)
}
