package otlptest

import (
	"reflect"
	"strings"
)

// Keys returns the keys of a configuration's file, those of sections joined by "::".
func Keys(config any) []string { return keys(reflect.TypeOf(config), "") }

func keys(t reflect.Type, section string) (all []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for field := range t.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		switch {
		case options == "squash":
			all = append(all, keys(field.Type, section)...)
		case key == "":
		case field.Type.Kind() == reflect.Struct && !strings.Contains(field.Type.String(), "Optional"):
			all = append(all, keys(field.Type, section+key+"::")...)
		default:
			all = append(all, section+key)
		}
	}
	return all
}
