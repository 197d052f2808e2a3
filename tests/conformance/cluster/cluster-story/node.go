package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	Reason     string  `json:"reason"`
	Generation uint64  `json:"generation"` // of the ledger after the line
	Changed    []Moved `json:"changed"`
}

// Moved is a container that a line was not about.
type Moved struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Mode      string `json:"mode"`
	CPUs      string `json:"cpus"`
	Withheld  string `json:"withheld"`
}

// simulatorArguments are those of topoletd on a node, or on one that is replayed.
func simulatorArguments(options Options, node *Node) []string {
	return []string{"simulate", "--topology", node.Machine.Topology, "--workload", "-", "--json",
		"--daemon.node-name=" + node.Name, "--daemon.plugin-dir=" + options.Plugins, "--plugins.enable=numa",
		"--plugins.required.numa=true",
		"--numa.policy=single-numa-node", fmt.Sprintf("--placement.min-shared-cpus=%d", minSharedCPUs),
		"--placement.deadline-ms=60000"}
}

// Node is simulated: its topoletd is `topolet simulate`, its kubelet is kubelet.go, its agent is a real one. A plain one
// has the kubelet only.
type Node struct {
	Name    string
	Machine Machine
	IsPlain bool

	options   Options
	directory string
	simulator *exec.Cmd
	input     io.WriteCloser
	output    *bufio.Scanner

	mutex sync.Mutex // of what follows
	lines []Line
	agent *exec.Cmd

	work chan func()
}

func plainNode(index int) *Node {
	return &Node{Name: fmt.Sprintf("plain-%02d", index), Machine: plainMachine, IsPlain: true, work: make(chan func(), 10000)}
}

func startNode(options Options, index int, machine Machine) (*Node, error) {
	node := &Node{
		Name:      fmt.Sprintf("node-%02d", index),
		Machine:   machine,
		options:   options,
		directory: options.Directory,
		work:      make(chan func(), 10000),
	}
	arguments := append(simulatorArguments(options, node), "--watch", node.socket())
	node.simulator = exec.Command(options.Topolet, arguments...)
	node.simulator.Stderr = os.Stderr
	var err error
	if node.input, err = node.simulator.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := node.simulator.StdoutPipe()
	if err != nil {
		return nil, err
	}
	node.output = bufio.NewScanner(output)
	node.output.Buffer(make([]byte, 1<<20), 1<<26)
	if err := node.simulator.Start(); err != nil {
		return nil, err
	}
	// Answered once the socket is there.
	if _, err := node.apply(map[string]any{"op": "clock", "advance_s": 0}); err != nil {
		return nil, err
	}
	return node, node.startAgent()
}

func (n *Node) socket() string { return filepath.Join(n.directory, n.Name+".sock") }

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
		n.options.Kubeconfig, "--pod-resources", "none", "--metrics-address", "none", "--page-address", "none")
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
