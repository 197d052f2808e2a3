package main

import "fmt"

// Machine is what a simulated node is: an hwloc description, and how many CPUs its kubelet offers to pods.
type Machine struct {
	Topology    string
	CPUs        int
	Allocatable int
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
