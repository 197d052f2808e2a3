package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// deviceResource is what pods request that want a device.
const deviceResource = "example.com/gpu"

// Machine is what a simulated node is: an hwloc description, and the NUMA nodes of its devices.
type Machine struct {
	Topology string
	CPUs     int
	Zones    int
	Devices  []int
	Isolated string // the CPUs that the kernel isolates
}

// isolated has the upper half of each zone isolated.
func (m Machine) isolated() Machine {
	var halves []string
	size := m.CPUs / m.Zones
	for zone := 0; zone < m.Zones; zone++ {
		halves = append(halves, fmt.Sprintf("%d-%d", zone*size+size/2, (zone+1)*size-1))
	}
	m.Isolated = strings.Join(halves, ",")
	return m
}

// arguments are those of each program that is told of the machine.
func (m Machine) arguments() []string {
	arguments := []string{"--topology", m.Topology}
	if m.Isolated != "" {
		arguments = append(arguments, "--isolated-cpus", m.Isolated)
	}
	return arguments
}

// The memory of each NUMA node, as in `numa:1(memory=64GB)`.
const zoneMemory = int64(64_000_000_000)

func machine(zones, cores, threads int, devices ...int) Machine {
	return Machine{
		Topology: fmt.Sprintf("pack:%d numa:1(memory=64GB) core:%d pu:%d", zones, cores, threads),
		CPUs:     zones * cores * threads,
		Zones:    zones,
		Devices:  devices,
	}
}

// A node of 4 x 10 CPUs, and one of 2 x 20: as many, but a container of 20 has them in one zone on the second only.
func fieldMachines() []Machine { return []Machine{machine(4, 10, 1), machine(2, 20, 1)} }

// The machine of a node without topoletd.
var plainMachine = Machine{CPUs: 64, Zones: 2}

func (o Options) machines() []Machine {
	switch o.Case {
	case "field":
		return fieldMachines()
	case "preemption":
		return []Machine{machine(2, 10, 1)}
	case "registration":
		return []Machine{machine(2, 10, 1), machine(4, 4, 1, 0, 1)}
	}
	shapes := []Machine{
		machine(2, 8, 1, 0, 1), machine(4, 4, 1, 0, 1), machine(2, 4, 2), machine(8, 2, 2), machine(2, 12, 1, 0, 0, 1, 1)}
	var machines []Machine
	for i := 0; i < o.Nodes; i++ {
		machine := shapes[i%len(shapes)]
		if i >= o.Nodes-o.IsolatedNodes {
			machine = machine.isolated()
		}
		machines = append(machines, machine)
	}
	return machines
}

// One CPU of each node is left to whoever shares.
const minSharedCPUs = 1

// writeConfiguration writes the topolet.conf of all simulated nodes. Calls of plugins may take long where much else runs.
func (o Options) writeConfiguration() error {
	heal := ""
	if o.Heal != "" {
		// A container with bound memory is moved only where its memory goes with it.
		heal = "heal = " + o.Heal + "\nmemory-migrate = true\n"
	}
	text := fmt.Sprintf(`[daemon]
plugin-dir = %s
[placement]
min-shared-cpus = %d
isolated = prefer
deadline-ms = 60000
%s[plugins]
enable = numa
enable = gpu
required.numa = true
[numa]
policy = single-numa-node
memory = bind
`, o.Plugins, minSharedCPUs, heal)
	return os.WriteFile(o.configuration(), []byte(text), 0o600)
}

func (o Options) configuration() string { return filepath.Join(o.Directory, "topolet.conf") }

// Offer is what a kubelet offers to pods of what its machine has.
type Offer struct{ MilliCPUs, Memory int64 }

// offer asks `topolet config kubelet`, as whoever sets up the node does.
func (o Options) offer(machine Machine) (Offer, error) {
	all := Offer{MilliCPUs: int64(machine.CPUs) * 1000, Memory: int64(machine.Zones) * zoneMemory}
	if machine.Topology == "" {
		return all, nil
	}
	arguments := append([]string{"config", "kubelet", "--config", o.configuration()}, machine.arguments()...)
	text, err := exec.Command(o.Topolet, arguments...).Output()
	if err != nil {
		return Offer{}, fmt.Errorf("topolet config kubelet for %s: %w", machine.Topology, err)
	}
	var advice struct {
		SystemReserved map[string]string `json:"systemReserved"`
	}
	if err := yaml.Unmarshal(text, &advice); err != nil {
		return Offer{}, err
	}
	amount := func(name string) resource.Quantity {
		quantity, _ := resource.ParseQuantity(advice.SystemReserved[name])
		return quantity
	}
	cpus, memory := amount("cpu"), amount("memory")
	return Offer{MilliCPUs: all.MilliCPUs - cpus.MilliValue(), Memory: all.Memory - memory.Value()}, nil
}
