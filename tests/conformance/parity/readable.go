package main

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// readable writes a message in a fixed order, so that equal content gives equal text.
func readable(message proto.Message) string {
	var text strings.Builder
	write(&text, message.ProtoReflect())
	return text.String()
}

func write(text *strings.Builder, message protoreflect.Message) {
	text.WriteByte('{')
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); message.Has(field) {
			fmt.Fprintf(text, "%s: ", field.Name())
			writeField(text, field, message.Get(field))
			text.WriteByte(' ')
		}
	}
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		fmt.Fprintf(text, "unknown: %x", []byte(unknown))
	}
	text.WriteByte('}')
}

func writeField(text *strings.Builder, field protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch {
	case field.IsMap():
		writeMap(text, field, value.Map())
	case field.IsList():
		writeList(text, field, value.List())
	default:
		writeValue(text, field, value)
	}
}

// A runtime that keeps its objects in a map lists them in another order each time.
func writeList(text *strings.Builder, field protoreflect.FieldDescriptor, list protoreflect.List) {
	var elements []string
	for i := range list.Len() {
		var element strings.Builder
		writeValue(&element, field, list.Get(i))
		elements = append(elements, element.String())
	}
	if field.Message() != nil {
		sort.Strings(elements)
	}
	text.WriteString("[" + strings.Join(elements, " ") + "]")
}

func writeMap(text *strings.Builder, field protoreflect.FieldDescriptor, entries protoreflect.Map) {
	var keys []protoreflect.MapKey
	entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key)
		return true
	})
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	text.WriteByte('{')
	for _, key := range keys {
		fmt.Fprintf(text, "%s=", key)
		writeValue(text, field.MapValue(), entries.Get(key))
		text.WriteByte(' ')
	}
	text.WriteByte('}')
}

func writeValue(text *strings.Builder, field protoreflect.FieldDescriptor, value protoreflect.Value) {
	if field.Message() != nil {
		write(text, value.Message())
		return
	}
	fmt.Fprintf(text, "%q", fmt.Sprint(value.Interface()))
}

// names replaces what must differ between two tellings of the same story: identities by the order of their
// appearance, moments and what is measured by a word, and the CPUs that topolet is there to set.
type names struct {
	known map[string]string
}

var (
	identity = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	moments  = regexp.MustCompile(`\b1[0-9]{18}\b|\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)`)
	address  = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/(exec|attach|portforward)/[A-Za-z0-9_-]{8}`)
	process  = regexp.MustCompile(`(\\*"pid\\*":|/proc/)[0-9]+`)
	measured = regexp.MustCompile(`\{value: "[0-9]+" \}|\(current usage: .*\)|\([0-9]+ vs\. [0-9]+\)`)
	cpuSet   = regexp.MustCompile(`cpuset_cpus: "[^"]*" ?|\\*"cpuset_cpus\\*":\\*"[^"\\]*\\*",?|,?\\*"cpus\\*":\\*"[^"\\]*\\*"`)
)

func (n *names) apply(text string) string {
	text = identity.ReplaceAllStringFunc(text, func(id string) string {
		if n.known[id] == "" {
			n.known[id] = fmt.Sprintf("ID%d", len(n.known)+1)
		}
		return n.known[id]
	})
	text = moments.ReplaceAllString(text, "MOMENT")
	text = address.ReplaceAllString(text, "http://ADDRESS/$1/TOKEN")
	text = process.ReplaceAllString(text, "${1}PID")
	return cpuSet.ReplaceAllString(text, "")
}

// unmeasured is for statistics, which change while they are asked for.
func unmeasured(text string) string { return measured.ReplaceAllString(text, `{}`) }
