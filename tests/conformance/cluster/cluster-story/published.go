package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Zone is what a NodeResourceTopology says of one NUMA node.
type Zone struct {
	Name      string
	CPUs      []int
	Available int
	Left      Left  // the same CPUs, by where they come from
	Memory    int64 // available
	Devices   int   // available
}

// Published is one version of a node's NodeResourceTopology.
type Published struct {
	Node         string
	SeenAt       time.Time
	Generation   uint64
	Acknowledged []string // beginnings of uids
	Zones        []Zone
}

func (s *Story) onTopology(object *unstructured.Unstructured) {
	published := Published{Node: object.GetName(), SeenAt: time.Now()}
	attributes, _, _ := unstructured.NestedSlice(object.Object, "attributes")
	for _, attribute := range attributes {
		name, value := nameAndValue(attribute)
		switch name {
		case "topolet.io/generation":
			published.Generation, _ = strconv.ParseUint(value, 10, 64)
		case "topolet.io/acked":
			published.Acknowledged = strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
		}
	}
	zones, _, _ := unstructured.NestedSlice(object.Object, "zones")
	for _, raw := range zones {
		published.Zones = append(published.Zones, readZone(raw.(map[string]any)))
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seenNodes[published.Node] = true
	s.result.Published++
	if s.nodes[published.Node] != nil {
		s.published = append(s.published, published)
	}
}

func readZone(zone map[string]any) Zone {
	read := Zone{Name: zone["name"].(string)}
	tellsSources := false
	for _, attribute := range asList(zone["attributes"]) {
		name, value := nameAndValue(attribute)
		switch name {
		case "topolet.io/cpus":
			read.CPUs = cpusIn(value)
		case "topolet.io/pool-cpus":
			tellsSources = true
			_, _ = fmt.Sscanf(value, "%d/", &read.Left.Pool)
		case "topolet.io/isolated-cpus":
			_, _ = fmt.Sscanf(value, "%d/", &read.Left.Isolated)
		}
	}
	for _, raw := range asList(zone["resources"]) {
		told := raw.(map[string]any)
		amount, _ := resource.ParseQuantity(told["available"].(string))
		switch told["name"] {
		case "cpu":
			read.Available = int(amount.Value())
		case "memory":
			read.Memory = amount.Value()
		case deviceResource:
			read.Devices = int(amount.Value())
		}
	}
	if !tellsSources {
		read.Left.Pool = read.Available
	}
	return read
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func nameAndValue(attribute any) (string, string) {
	pair := attribute.(map[string]any)
	name, _ := pair["name"].(string)
	value, _ := pair["value"].(string)
	return name, value
}

// cpusIn reads a list as the kernel writes it, "0-3,8".
func cpusIn(list string) []int {
	var cpus []int
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			to, _ = strconv.Atoi(last)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func (s *Story) lastPublished(node string) *Published {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := len(s.published) - 1; i >= 0; i-- {
		if s.published[i].Node == node {
			last := s.published[i]
			return &last
		}
	}
	return nil
}

func (s *Story) lastZones(node string) []Zone {
	last := s.lastPublished(node)
	if last == nil {
		return nil
	}
	return last.Zones
}
