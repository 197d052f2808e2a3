package main

import (
	"fmt"
	"math/rand"
)

// Shape is what the nodes are.
type Shape struct {
	Nodes       int
	Zones       int
	CPUsPerZone int
}

func (s Shape) nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// Topology is what a node has left, as its agent publishes it.
type Topology struct {
	Node         string
	Shape        Shape
	Available    []int // CPUs, by zone
	Acknowledged []string
	Generation   int
}

// topologies are of nodes with a part of their CPUs in use, so that not every pod fits into every zone.
func topologies(shape Shape, seed int64) []*Topology {
	random := rand.New(rand.NewSource(seed))
	all := make([]*Topology, shape.Nodes)
	for i := range all {
		all[i] = &Topology{Node: shape.nodeName(i), Shape: shape, Generation: 1}
		for zone := 0; zone < shape.Zones; zone++ {
			all[i].Available = append(all[i].Available, random.Intn(shape.CPUsPerZone+1))
		}
	}
	return all
}

// object is the NodeResourceTopology, as large as the agent's: CPUs, memory and huge pages, and the distances of zones.
func (t *Topology) object(version string) map[string]any {
	var zones []any
	for zone, available := range t.Available {
		var costs []any
		for other := range t.Available {
			cost := 20
			if other == zone {
				cost = 10
			}
			costs = append(costs, map[string]any{"name": fmt.Sprintf("node-%d", other), "value": cost})
		}
		first := zone * t.Shape.CPUsPerZone
		zones = append(zones, map[string]any{
			"name": fmt.Sprintf("node-%d", zone), "type": "Node", "costs": costs,
			"attributes": []any{nameAndValue("topolet.io/cpus", fmt.Sprintf("%d-%d", first, first+t.Shape.CPUsPerZone-1))},
			"resources": []any{
				resource("cpu", fmt.Sprint(t.Shape.CPUsPerZone), fmt.Sprint(available)),
				resource("memory", "67108864Ki", "50331648Ki"),
				resource("hugepages-2Mi", "1Gi", "1Gi"),
			},
		})
	}
	metadata := map[string]any{"name": t.Node}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return map[string]any{
		"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": metadata,
		"attributes": []any{
			nameAndValue("topologyManagerPolicy", "single-numa-node"), nameAndValue("topologyManagerScope", "container"),
			nameAndValue("topolet.io/generation", fmt.Sprint(t.Generation)), nameAndValue("topolet.io/acked", t.acknowledged()),
		},
		"zones": zones,
	}
}

func (t *Topology) acknowledged() string {
	text := ""
	for i, uid := range t.Acknowledged {
		if i > 0 {
			text += ","
		}
		text += uid[:8]
	}
	return text
}

func nameAndValue(name, value string) map[string]any {
	return map[string]any{"name": name, "value": value}
}

func resource(name, capacity, available string) map[string]any {
	return map[string]any{"name": name, "capacity": capacity, "allocatable": capacity, "available": available}
}

// podObject is a pod as a Deployment makes them. One in five has no CPUs of its own.
func podObject(name, uid, schedulerName, node string, random *rand.Rand) map[string]any {
	cpus := fmt.Sprint(1 + random.Intn(4))
	resources := map[string]any{"requests": map[string]any{"cpu": cpus, "memory": "256Mi"},
		"limits": map[string]any{"cpu": cpus, "memory": "256Mi"}}
	if random.Intn(5) == 0 {
		resources = map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "64Mi"}}
	}
	var environment []any
	for i := 0; i < 12; i++ {
		environment = append(environment, nameAndValue(fmt.Sprintf("SETTING_%d", i), "a value of usual length"))
	}
	metadata := map[string]any{
		"name": name, "namespace": "default",
		"labels":      map[string]any{"app": "trader", "tier": "backend", "pod-template-hash": "5d59d67564"},
		"annotations": map[string]any{"checksum/config": "0c5ad5b6a7b9f0e0d2f2a5d6f7e8c9b0a1d2c3e4f5a6b7c8d9e0f1a2b3c4d5e6"},
	}
	if uid != "" {
		metadata["uid"] = uid
	}
	spec := map[string]any{
		"schedulerName": schedulerName, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
		"tolerations": []any{map[string]any{"key": "topolet.io/pool", "operator": "Exists", "effect": "NoSchedule"}},
		"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/team/trader:1.2.3",
			"resources": resources, "env": environment,
			"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/ready", "port": 8080}}}},
	}
	if node != "" {
		spec["nodeName"] = node
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}
