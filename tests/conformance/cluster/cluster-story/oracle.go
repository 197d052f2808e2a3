package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Zone is what a NodeResourceTopology says of one NUMA node.
type Zone struct {
	Name      string
	CPUs      []int
	Available int
}

// Published is one version of a node's NodeResourceTopology.
type Published struct {
	Node         string
	Generation   uint64
	Acknowledged []string // beginnings of uids
	Zones        []Zone
}

func (s *Story) onTopology(object *unstructured.Unstructured) {
	published := Published{Node: object.GetName()}
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
		zone := raw.(map[string]any)
		read := Zone{Name: zone["name"].(string)}
		for _, attribute := range asList(zone["attributes"]) {
			if name, value := nameAndValue(attribute); name == "topolet.io/cpus" {
				read.CPUs = cpusIn(value)
			}
		}
		for _, raw := range asList(zone["resources"]) {
			resource := raw.(map[string]any)
			if resource["name"] == "cpu" {
				read.Available, _ = strconv.Atoi(resource["available"].(string))
			}
		}
		published.Zones = append(published.Zones, read)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seenNodes[published.Node] = true
	s.result.Published++
	if s.nodes[published.Node] != nil {
		s.published = append(s.published, published)
	}
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

// Holdings are the CPUs that containers have alone, and those kept idle for them, by pod.
type Holdings map[string][]int

func (h Holdings) add(pod, mode, cpus, withheld string) {
	held := cpusIn(withheld)
	if mode == "exclusive" {
		held = append(held, cpusIn(cpus)...)
	}
	h[pod] = held
}

// available is how many CPUs one container would get alone in each zone: those that nobody has alone, and no more than
// leaves the others theirs.
func (h Holdings) available(machine Machine, zones []Zone) []int {
	taken := map[int]bool{}
	for _, cpus := range h {
		for _, cpu := range cpus {
			taken[cpu] = true
		}
	}
	spare := machine.CPUs - len(taken) - minSharedCPUs
	var available []int
	for _, zone := range zones {
		free := 0
		for _, cpu := range zone.CPUs {
			if !taken[cpu] {
				free++
			}
		}
		available = append(available, max(0, min(free, spare)))
	}
	return available
}

// replay runs `lines` on a new simulated node and has it place `pending`. Returns how many CPUs each zone has left for one
// container, after the node has granted the most of these and refused one CPU more.
func (s *Story) replay(node *Node, lines []Line, pending []*corev1.Pod, zones []Zone) ([]int, error) {
	var input bytes.Buffer
	write := func(operation map[string]any) { input.Write(append(encode(operation), '\n')) }
	for _, line := range lines {
		input.WriteString(line.Text + "\n")
	}
	for _, pod := range pending {
		if !isKnown(lines, string(pod.UID)) {
			write(runPod(pod))
		}
		write(createContainer(pod))
	}
	answers, err := s.simulate(node, input.Bytes())
	if err != nil {
		return nil, err
	}
	holdings := Holdings{}
	for _, answered := range answers {
		for _, moved := range answered.Changed {
			holdings.add(moved.Pod, moved.Mode, moved.CPUs, moved.Withheld)
		}
		switch {
		case answered.Op == "remove_pod":
			delete(holdings, answered.Pod)
		case answered.Outcome == "placed":
			holdings.add(answered.Pod, answered.Mode, answered.CPUs, answered.Withheld)
		}
	}
	available := holdings.available(node.Machine, zones)
	most := slices.Max(available)
	expected := map[string]string{}
	for _, cpus := range []int{most + 1, most} {
		pod := fmt.Sprintf("probe-%d", cpus)
		switch cpus {
		case 0:
			continue
		case most:
			expected[pod] = "placed"
		default:
			expected[pod] = "denied"
		}
		write(map[string]any{"op": "run_pod", "pod": pod, "qos": "guaranteed"})
		write(map[string]any{"op": "create", "pod": pod, "container": containerName, "cpu_request_milli": cpus * 1000,
			"cpu_limit_milli": cpus * 1000, "memory_request": memoryBytes, "memory_limit": memoryBytes})
	}
	probed, err := s.simulate(node, input.Bytes())
	if err != nil {
		return nil, err
	}
	for _, answered := range probed[len(answers):] {
		if answered.Op != "create" {
			continue
		}
		if answered.Outcome != expected[answered.Pod] {
			return nil, fmt.Errorf("%s: a container of %s should be %s by arithmetic, and is %s: %s", node.Name, answered.Pod,
				expected[answered.Pod], answered.Outcome, answered.Reason)
		}
	}
	return available, nil
}

func isKnown(lines []Line, uid string) bool {
	known := false
	for _, line := range lines {
		if !strings.Contains(line.Text, uid) {
			continue
		}
		known = !strings.Contains(line.Text, `"op":"remove_pod"`)
	}
	return known
}

type answeredLine struct {
	Op  string `json:"op"`
	Pod string `json:"pod"`
	Answer
}

func (s *Story) simulate(node *Node, input []byte) ([]answeredLine, error) {
	program := exec.Command(s.options.Topolet, simulatorArguments(s.options, node)...)
	program.Stdin = bytes.NewReader(input)
	output, err := program.Output()
	if err != nil {
		return nil, fmt.Errorf("replaying %s: %w", node.Name, err)
	}
	var answers []answeredLine
	for _, text := range bytes.Split(bytes.TrimSpace(output), []byte("\n")) {
		var answer answeredLine
		if err := json.Unmarshal(text, &answer); err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// pendingAt are the acknowledged pods that the ledger does not have after `lines`, in the order of their creation. Of
// those that it had and has no more, a reader may know or not.
func (s *Story) pendingAt(published Published, lines []Line, withEnded bool) []*corev1.Pod {
	booked, ended := map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		var operation struct {
			Op  string `json:"op"`
			Pod string `json:"pod"`
		}
		_ = json.Unmarshal([]byte(line.Text), &operation)
		switch {
		case operation.Op == "create" && line.Answer.Outcome == "placed":
			booked[operation.Pod] = true
		case operation.Op == "remove_pod":
			delete(booked, operation.Pod)
			ended[operation.Pod] = true
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var pending []*corev1.Pod
	for _, record := range s.pods {
		uid := string(record.Object.UID)
		if booked[uid] || ended[uid] && !withEnded || !slices.Contains(published.Acknowledged, uid[:8]) {
			continue
		}
		pending = append(pending, record.Object)
	}
	sort.Slice(pending, func(i, j int) bool {
		a, b := pending[i], pending[j]
		if !a.CreationTimestamp.Time.Equal(b.CreationTimestamp.Time) {
			return a.CreationTimestamp.Time.Before(b.CreationTimestamp.Time)
		}
		return a.UID < b.UID
	})
	return pending
}

// check compares a published object with what a node grants that is where the object says. Where its generation is one
// in the middle of an operation, the node was there before or after it.
func (s *Story) check(published Published) error {
	node := s.nodes[published.Node]
	lines := node.history()
	before := sort.Search(len(lines), func(i int) bool { return lines[i].Answer.Generation > published.Generation })
	var said []int
	for _, zone := range published.Zones {
		said = append(said, zone.Available)
	}
	var granted [][]int
	for length := before; length <= min(before+1, len(lines)); length++ {
		for _, withEnded := range []bool{true, false} {
			pending := s.pendingAt(published, lines[:length], withEnded)
			found, err := s.replay(node, lines[:length], pending, published.Zones)
			if err != nil {
				return err
			}
			if slices.Equal(found, said) {
				return nil
			}
			granted = append(granted, found)
		}
	}
	return fmt.Errorf("%s at generation %d with %v acknowledged publishes %v, and grants one of %v", published.Node,
		published.Generation, published.Acknowledged, said, granted)
}
