package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Held is what a container has: the CPUs that it has alone and those kept idle for it, and memory on NUMA nodes.
type Held struct {
	CPUs   []int
	Mems   string
	Memory int64
}

// Holdings are what containers have, by "POD/CONTAINER".
type Holdings map[string]Held

func (h Holdings) set(key, mode, cpus, withheld, mems string) {
	held := Held{CPUs: cpusIn(withheld), Mems: mems, Memory: h[key].Memory}
	if mode == "exclusive" {
		held.CPUs = append(held.CPUs, cpusIn(cpus)...)
	}
	h[key] = held
}

// Left is how many CPUs one container would get alone in a zone: of the pool, or of those that the kernel isolates.
type Left struct{ Pool, Isolated int }

// most: it gets all of one kind, whichever has enough.
func (l Left) most() int { return max(l.Pool, l.Isolated) }

func (l Left) isMoreThan(other Left) bool { return l.Pool > other.Pool || l.Isolated > other.Isolated }

// available: those that nobody has alone, and of the pool no more than leaves the others theirs.
func (h Holdings) available(machine Machine, zones []Zone) []Left {
	kind := map[int]string{}
	for _, cpu := range cpusIn(machine.Isolated) {
		kind[cpu] = "isolated"
	}
	spare := machine.CPUs - len(kind) - minSharedCPUs
	for _, held := range h {
		for _, cpu := range held.CPUs {
			if kind[cpu] == "" {
				spare--
			}
			kind[cpu] = "taken"
		}
	}
	var available []Left
	for _, zone := range zones {
		free := map[string]int{}
		for _, cpu := range zone.CPUs {
			free[kind[cpu]]++
		}
		available = append(available, Left{Pool: max(0, min(free[""], spare)), Isolated: free["isolated"]})
	}
	return available
}

// memory is what each zone has left at most: of what is bound to several zones nothing is counted.
func (h Holdings) memory(zones []Zone) []int64 {
	var left []int64
	for _, zone := range zones {
		rest := zoneMemory
		for _, held := range h {
			if "node-"+held.Mems == zone.Name {
				rest -= held.Memory
			}
		}
		left = append(left, rest)
	}
	return left
}

type answeredLine struct {
	Op        string `json:"op"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Answer
}

// take applies what one line led to. `memory` is what its container requests.
func (h Holdings) take(answer answeredLine, memory int64) {
	for _, moved := range answer.Changed {
		h.set(moved.Pod+"/"+moved.Container, moved.Mode, moved.CPUs, moved.Withheld, moved.Mems)
	}
	key := answer.Pod + "/" + answer.Container
	switch {
	case answer.Op == "remove_pod":
		h.forget(answer.Pod+"/", "")
	case answer.Op == "exit":
		delete(h, key)
	case answer.Outcome == "placed" || answer.Op == "update" && answer.Outcome == "ok":
		if answer.Op == "create" {
			h.forget(answer.Pod+"/"+initPrefix, key) // they have ended before the next one is created
			h[key] = Held{Memory: memory}
		}
		h.set(key, answer.Mode, answer.CPUs, answer.Withheld, answer.Mems)
	}
}

func (h Holdings) forget(prefix, but string) {
	for key := range h {
		if strings.HasPrefix(key, prefix) && key != but {
			delete(h, key)
		}
	}
}

// Replay is a node that has what another one had.
type Replay struct {
	node     *Node
	program  *exec.Cmd
	input    io.WriteCloser
	output   *bufio.Scanner
	holdings Holdings
	known    map[string]bool // pods
	hasMoved bool            // a container with CPUs of its own made room for one that the history does not have
}

func openReplay(options Options, node *Node, lines []Line) (*Replay, error) {
	r := &Replay{node: node, holdings: Holdings{}, known: map[string]bool{}}
	r.program = exec.Command(options.Topolet, simulatorArguments(options, node)...)
	var err error
	if r.input, err = r.program.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := r.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.output = answersFrom(output)
	if err := r.program.Start(); err != nil {
		return nil, err
	}
	for _, line := range lines {
		if _, err := r.run(line.Text); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func (r *Replay) close() {
	_ = r.input.Close()
	_ = r.program.Wait()
}

func (r *Replay) run(text string) (answeredLine, error) {
	var answer answeredLine
	var asked struct {
		Memory int64 `json:"memory_request"`
	}
	if _, err := fmt.Fprintln(r.input, text); err != nil {
		return answer, err
	}
	if !r.output.Scan() {
		return answer, fmt.Errorf("the replay of %s ended", r.node.Name)
	}
	if err := json.Unmarshal(r.output.Bytes(), &answer); err != nil {
		return answer, err
	}
	if answer.Outcome == "error" {
		return answer, fmt.Errorf("replaying %s: %s", r.node.Name, r.output.Text())
	}
	_ = json.Unmarshal([]byte(text), &asked)
	r.holdings.take(answer, asked.Memory)
	if answer.Op == "run_pod" || answer.Op == "remove_pod" {
		r.known[answer.Pod] = answer.Op == "run_pod"
	}
	return answer, nil
}

func (r *Replay) apply(operation map[string]any) (answeredLine, error) {
	answer, err := r.run(string(encode(operation)))
	r.hasMoved = r.hasMoved || answer.movedExclusive() > 0
	return answer, err
}

// Pending are containers of a pod that are still to be created.
type Pending struct {
	Pod     *corev1.Pod
	Planned PlannedPod
	Parts   []Part
	Devices []Device
}

// create creates them, and calls `after` after each. Returns whether all were placed.
func (r *Replay) create(pending Pending, after func()) (bool, error) {
	uid := string(pending.Pod.UID)
	if !r.known[uid] {
		if _, err := r.apply(runPod(pending.Pod, pending.Planned)); err != nil {
			return false, err
		}
	}
	isWhole := true
	for _, part := range pending.Parts {
		answer, err := r.apply(createContainer(uid, pending.Planned, part, pending.Devices))
		if err != nil {
			return false, err
		}
		isWhole = isWhole && answer.Outcome == "placed"
		after()
	}
	return isWhole, nil
}

// probe has the node grant the most that a zone has by arithmetic, and refuse one CPU more, but where another container
// makes room for it.
func (r *Replay) probe(zones []Zone) error {
	most := 0
	for _, left := range r.holdings.available(r.node.Machine, zones) {
		most = max(most, left.most())
	}
	for _, cpus := range []int{most + 1, most} {
		if cpus == 0 {
			continue
		}
		pod := fmt.Sprintf("probe-%d", cpus)
		if _, err := r.apply(map[string]any{"op": "run_pod", "pod": pod, "qos": "guaranteed"}); err != nil {
			return err
		}
		answer, err := r.apply(map[string]any{"op": "create", "pod": pod, "container": mainName,
			"cpu_request_milli": cpus * 1000, "cpu_limit_milli": cpus * 1000, "memory_request": memoryBytes,
			"memory_limit": memoryBytes})
		if err != nil {
			return err
		}
		if answer.movedExclusive() > 0 {
			return nil
		}
		if (answer.Outcome == "placed") != (cpus == most) {
			return fmt.Errorf("%s: a container of %s should not be %s by arithmetic: %s", r.node.Name, pod, answer.Outcome,
				answer.Reason)
		}
	}
	return nil
}
