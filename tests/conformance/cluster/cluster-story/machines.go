package main

import "fmt"

// Machine is what a simulated node is: an hwloc description, and how many CPUs its kubelet offers to pods.
type Machine struct {
	Topology    string
	CPUs        int
	Allocatable int
}

// A node of 2 x 10 CPUs, and one of 2 x 20. A scheduler that knows of no zones takes the first, which seems to have
// more left.
func fieldMachines() []Machine {
	return []Machine{
		{Topology: "pack:2 numa:1(memory=64GB) core:10 pu:1", CPUs: 20, Allocatable: 80},
		{Topology: "pack:2 numa:1(memory=64GB) core:20 pu:1", CPUs: 40, Allocatable: 40},
	}
}

// What a node without topoletd has.
var plainMachine = Machine{CPUs: 64, Allocatable: 64}

func (o Options) machines() []Machine {
	if o.Case == "field" {
		return fieldMachines()
	}
	var machines []Machine
	for i := 0; i < o.Nodes; i++ {
		machines = append(machines, machineOf(i))
	}
	return machines
}

// One CPU of each node is left to whoever shares: placement.min-shared-cpus.
const minSharedCPUs = 1

func machineOf(index int) Machine {
	shapes := []struct{ nodes, cores, threads int }{{2, 8, 1}, {4, 4, 1}, {2, 4, 2}, {8, 2, 2}, {2, 12, 1}}
	shape := shapes[index%len(shapes)]
	cpus := shape.nodes * shape.cores * shape.threads
	return Machine{
		Topology:    fmt.Sprintf("pack:%d numa:1(memory=64GB) core:%d pu:%d", shape.nodes, shape.cores, shape.threads),
		CPUs:        cpus,
		Allocatable: cpus - minSharedCPUs,
	}
}
