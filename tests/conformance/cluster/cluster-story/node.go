package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Line is one operation of a node, and what came of it.
type Line struct {
	Text   string
	Answer Answer
}

// Answer is what `topolet simulate --json` says to one line.
type Answer struct {
	Outcome    string  `json:"outcome"`
	Mode       string  `json:"mode"`
	CPUs       string  `json:"cpus"`
	Withheld   string  `json:"withheld"`
	Mems       string  `json:"mems"`
	Reason     string  `json:"reason"`
	Generation uint64  `json:"generation"` // of the ledger after the line
	Changed    []Moved `json:"changed"`
}

// movedExclusive is how many containers were given other CPUs of their own by what was asked for another.
func (a Answer) movedExclusive() int {
	number := 0
	for _, moved := range a.Changed {
		if moved.Mode == "exclusive" {
			number++
		}
	}
	return number
}

// Moved is a container that a line was not about.
type Moved struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Mode      string `json:"mode"`
	CPUs      string `json:"cpus"`
	Withheld  string `json:"withheld"`
	Mems      string `json:"mems"`
}

// simulatorArguments are those of topoletd on a node, or on one that is replayed.
func simulatorArguments(options Options, node *Node) []string {
	return append([]string{"simulate", "--workload", "-", "--json", "--config", options.configuration(),
		"--daemon.node-name=" + node.Name}, node.Machine.arguments()...)
}

// Node is simulated: its topoletd is `topolet simulate`, its kubelet is kubelet.go, its agent is a real one. A plain one
// has the kubelet only.
type Node struct {
	Name    string
	Machine Machine
	Offer   Offer
	IsPlain bool

	options    Options
	directory  string
	kubeconfig string // of its agent
	devices    *DeviceManager
	simulator  *exec.Cmd
	input      io.WriteCloser
	output     *bufio.Scanner

	mutex        sync.Mutex // of what follows
	agent        *exec.Cmd
	lines        []Line
	unsure       []Unsure
	disturbances []Disturbance

	// The kubelet's tasks, done one after the other.
	work chan func()
}

// Unsure is when a resize was underway: the API server knew of it and the ledger did not, or the agent did not yet.
type Unsure struct {
	From  uint64 // the ledger's generation
	Until time.Time
}

// An agent knows so long afterwards what the API server does.
const agentLag = 2 * time.Second

func newNode(options Options, name string, machine Machine, seed int64) (*Node, error) {
	offer, err := options.offer(machine)
	return &Node{
		Name: name, Machine: machine, Offer: offer, options: options, directory: options.Directory,
		devices: newDeviceManager(machine.Devices, seed), work: make(chan func(), 10000),
	}, err
}

func plainNode(options Options, index int) (*Node, error) {
	node, err := newNode(options, fmt.Sprintf("plain-%02d", index), plainMachine, 0)
	node.IsPlain = true
	return node, err
}

// startNode starts all of a node but its agent.
func startNode(options Options, index int, machine Machine) (*Node, error) {
	node, err := newNode(options, fmt.Sprintf("node-%02d", index), machine, options.Seed+int64(index))
	if err != nil {
		return nil, err
	}
	arguments := append(simulatorArguments(options, node), "--watch", node.socket())
	node.simulator = exec.Command(options.Topolet, arguments...)
	node.simulator.Stderr = os.Stderr
	if node.input, err = node.simulator.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := node.simulator.StdoutPipe()
	if err != nil {
		return nil, err
	}
	node.output = answersFrom(output)
	if err := node.simulator.Start(); err != nil {
		return nil, err
	}
	if err := node.devices.serve(node.deviceSocket()); err != nil {
		return nil, err
	}
	// Answered once the socket is there.
	if _, err := node.apply(map[string]any{"op": "clock", "advance_s": 0}); err != nil {
		return nil, err
	}
	for _, device := range node.devices.all {
		if _, err := node.apply(map[string]any{"op": "device", "path": device.Path, "kind": "gpu",
			"nodes": fmt.Sprint(device.Zone)}); err != nil {
			return nil, err
		}
	}
	return node, nil
}

func answersFrom(output io.Reader) *bufio.Scanner {
	answers := bufio.NewScanner(output)
	answers.Buffer(make([]byte, 1<<20), 1<<26)
	return answers
}

func (n *Node) socket() string       { return filepath.Join(n.directory, n.Name+".sock") }
func (n *Node) deviceSocket() string { return filepath.Join(n.directory, n.Name+".devices") }

// apply has topoletd do one operation. Only the node's own worker calls it.
func (n *Node) apply(operation map[string]any) (Answer, error) {
	if n.IsPlain {
		return Answer{Outcome: "placed", Mode: "none"}, nil
	}
	text, err := json.Marshal(operation)
	if err != nil {
		return Answer{}, err
	}
	if _, err := fmt.Fprintf(n.input, "%s\n", text); err != nil {
		return Answer{}, err
	}
	if !n.output.Scan() {
		return Answer{}, fmt.Errorf("%s: the simulated topoletd ended", n.Name)
	}
	line := Line{Text: string(text)}
	if err := json.Unmarshal(n.output.Bytes(), &line.Answer); err != nil {
		return Answer{}, err
	}
	n.mutex.Lock()
	n.lines = append(n.lines, line)
	n.mutex.Unlock()
	return line.Answer, nil
}

func (n *Node) startAgent() error {
	log, err := os.OpenFile(filepath.Join(n.directory, n.Name+".agent.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	agent := exec.Command(n.options.Agent, "--watch", n.socket(), "--node-name", n.Name, "--kubernetes",
		n.kubeconfig, "--pod-resources", "unix://"+n.deviceSocket(), "--extender-lease", extenderNamespace+"/"+extenderLease,
		"--metrics-address", "none", "--page-address", "none")
	agent.Stdout, agent.Stderr = log, log
	if err := agent.Start(); err != nil {
		return err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.agent = agent
	return nil
}

// killAgent ends it as a crash would, and starts another one.
func (n *Node) killAgent() error {
	n.mutex.Lock()
	agent := n.agent
	n.mutex.Unlock()
	_ = agent.Process.Kill()
	_ = agent.Wait()
	return n.startAgent()
}

func (n *Node) end() {
	if n.IsPlain {
		return
	}
	n.mutex.Lock()
	if n.agent != nil {
		_ = n.agent.Process.Signal(syscall.SIGTERM)
		_ = n.agent.Wait()
	}
	n.mutex.Unlock()
	n.devices.stop()
	_ = n.input.Close()
	done := make(chan struct{})
	go func() { _ = n.simulator.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = n.simulator.Process.Kill()
	}
}

// history is a copy of all lines so far.
func (n *Node) history() []Line {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return append([]Line(nil), n.lines...)
}

// generation is that of the ledger after the last line.
func (n *Node) generation() uint64 {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if len(n.lines) == 0 {
		return 0 // a plain one has no ledger
	}
	return n.lines[len(n.lines)-1].Answer.Generation
}

// wasUnsure notes that the API server and the ledger told different things from a generation until now.
func (n *Node) wasUnsure(from uint64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.unsure = append(n.unsure, Unsure{from, time.Now().Add(agentLag)})
}

func (n *Node) isUnsure(published Published) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.ContainsFunc(n.unsure, func(u Unsure) bool {
		return u.From <= published.Generation && published.SeenAt.Before(u.Until)
	})
}

// saveHistory writes all operations of the node, for `topolet simulate --workload`.
func (n *Node) saveHistory() error {
	var text strings.Builder
	for _, line := range n.history() {
		text.WriteString(line.Text + "\n")
	}
	return os.WriteFile(filepath.Join(n.directory, n.Name+".workload.log"), []byte(text.String()), 0o600)
}
