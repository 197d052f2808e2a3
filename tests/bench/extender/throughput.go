package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

func (s *Shape) flags(flags *flag.FlagSet) {
	flags.IntVar(&s.Nodes, "nodes", 1000, "how many nodes there are")
	flags.IntVar(&s.Zones, "zones", 8, "how many NUMA nodes each has")
	flags.IntVar(&s.CPUsPerZone, "cpus", 16, "how many CPUs each of these has")
}

// runCluster makes Node objects and what their agents would publish.
func runCluster(ctx context.Context, arguments []string) error {
	var k Kube
	var shape Shape
	flags := flag.NewFlagSet("cluster", flag.ExitOnError)
	k.flags(flags)
	shape.flags(flags)
	if err := parse(flags, arguments); err != nil {
		return err
	}
	if err := k.connect(); err != nil {
		return err
	}
	amounts := map[string]any{"cpu": fmt.Sprint(shape.Zones * shape.CPUsPerZone), "memory": "512Gi", "pods": "110"}
	return inParallel(shape.Nodes, func(i int) error {
		name := shape.nodeName(i)
		node := map[string]any{"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"topolet.io/pool": "topolet"}}}
		if _, err := k.do(ctx, http.MethodPost, "/api/v1/nodes", node); err != nil {
			return err
		}
		// A new node is tainted until a controller sees that it is ready.
		if _, err := k.do(ctx, http.MethodPatch, "/api/v1/nodes/"+name,
			map[string]any{"spec": map[string]any{"taints": []any{}}}); err != nil {
			return err
		}
		_, err := k.do(ctx, http.MethodPatch, "/api/v1/nodes/"+name+"/status", map[string]any{"status": map[string]any{
			"capacity": amounts, "allocatable": amounts,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}})
		if err != nil {
			return err
		}
		_, err = k.do(ctx, http.MethodPost, topologyPath, emptyTopology(shape, i).object(""))
		return err
	})
}

func emptyTopology(shape Shape, i int) *Topology {
	t := &Topology{Node: shape.nodeName(i), Shape: shape, Generation: 1}
	for range shape.Zones {
		t.Available = append(t.Available, shape.CPUsPerZone)
	}
	return t
}

// Throughput is one round: pods that wait, and a scheduler that is started then.
type Throughput struct {
	kube   *Kube
	agents *Kube // the user who publishes
	shape  Shape
	count  int

	mutex   sync.Mutex // of what follows
	cpus    map[string]int
	nodes   map[string]*Topology
	changed map[string]bool
	bound   map[string]bool
	first   time.Time
	last    time.Time
	done    chan struct{}
}

func runThroughput(ctx context.Context, arguments []string) error {
	var k Kube
	t := &Throughput{kube: &k, cpus: map[string]int{}, nodes: map[string]*Topology{}, changed: map[string]bool{},
		bound: map[string]bool{}, done: make(chan struct{})}
	var schedulerName, start, agentsCertificate, agentsKey string
	var patience time.Duration
	var seed int64
	flags := flag.NewFlagSet("throughput", flag.ExitOnError)
	k.flags(flags)
	t.shape.flags(flags)
	flags.IntVar(&t.count, "pods", 2000, "how many pods wait")
	flags.StringVar(&schedulerName, "scheduler-name", "", "whose pods they are")
	flags.StringVar(&agentsCertificate, "agents-certificate", "", "the file of the certificate of who publishes what nodes have")
	flags.StringVar(&agentsKey, "agents-key", "", "and of its key")
	flags.StringVar(&start, "start", "", "a command that starts this scheduler, once they wait")
	flags.DurationVar(&patience, "patience", 5*time.Minute, "how long it may take until all are bound")
	flags.Int64Var(&seed, "seed", 1, "of all that is random")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	if err := k.connect(); err != nil {
		return err
	}
	agents := Kube{server: k.server, authority: k.authority, certificate: agentsCertificate, key: agentsKey}
	if err := agents.connect(); err != nil {
		return err
	}
	t.agents = &agents
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for i := range t.shape.Nodes {
		topology := emptyTopology(t.shape, i)
		t.nodes[topology.Node] = topology
	}
	if err := k.watchPods(ctx, t.onPod); err != nil {
		return err
	}
	if err := t.createPods(ctx, schedulerName, seed); err != nil {
		return err
	}
	var publisher sync.WaitGroup
	publisher.Go(func() { t.publish(ctx) })
	if output, err := exec.CommandContext(ctx, "bash", "-c", start).CombinedOutput(); err != nil {
		return fmt.Errorf("the scheduler could not be started: %w: %s", err, output)
	}
	select {
	case <-t.done:
	case <-time.After(patience):
		t.mutex.Lock()
		defer t.mutex.Unlock()
		return fmt.Errorf("only %d of %d pods are bound after %v", len(t.bound), t.count, patience)
	case <-ctx.Done():
		return ctx.Err()
	}
	stop()
	publisher.Wait()
	fmt.Printf("%.1f\n", float64(t.count-1)/t.last.Sub(t.first).Seconds())
	return t.clear(context.WithoutCancel(ctx))
}

func (t *Throughput) createPods(ctx context.Context, schedulerName string, seed int64) error {
	random := rand.New(rand.NewSource(seed))
	pods := make([]map[string]any, t.count)
	for i := range pods {
		name := fmt.Sprintf("pod-%04d", i)
		pods[i] = podObject(name, "", schedulerName, "", random)
		t.cpus[name] = cpusOf(pods[i])
	}
	return inParallel(t.count, func(i int) error {
		_, err := t.kube.do(ctx, http.MethodPost, "/api/v1/namespaces/default/pods", pods[i])
		return err
	})
}

// onPod notes when a pod was bound, and takes its CPUs from its node as that would.
func (t *Throughput) onPod(event podEvent) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	name, node := event.Object.Metadata.Name, t.nodes[event.Object.Spec.NodeName]
	if event.Type != "MODIFIED" || node == nil || t.bound[name] {
		return
	}
	t.bound[name] = true
	t.last = time.Now()
	if t.first.IsZero() {
		t.first = t.last
	}
	if len(t.bound) == t.count {
		close(t.done)
	}
	node.Acknowledged = append(node.Acknowledged, event.Object.Metadata.UID)
	node.take(t.cpus[name], event.Object.Metadata.Annotations["topolet.io/zone"])
	t.changed[node.Node] = true
}

// take gives CPUs of the zone that was chosen, or of the first that has so many.
func (t *Topology) take(cpus int, annotation string) {
	var chosen struct {
		Zones []int `json:"zones"`
	}
	if json.Unmarshal([]byte(annotation), &chosen) != nil || len(chosen.Zones) == 0 {
		for zone, available := range t.Available {
			if available >= cpus {
				chosen.Zones = []int{zone}
				break
			}
		}
	}
	for _, zone := range chosen.Zones {
		taken := min(cpus, t.Available[zone])
		t.Available[zone] -= taken
		cpus -= taken
	}
}

// publish writes objects that have changed, as agents do: a quarter of a second later.
func (t *Throughput) publish(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(250 * time.Millisecond)
		t.mutex.Lock()
		var objects []map[string]any
		for name := range t.changed {
			t.nodes[name].Generation++
			objects = append(objects, t.nodes[name].object(""))
		}
		clear(t.changed)
		t.mutex.Unlock()
		_ = t.write(ctx, t.agents, objects)
	}
}

func (t *Throughput) write(ctx context.Context, kube *Kube, objects []map[string]any) error {
	return inParallel(len(objects), func(i int) error {
		name := objects[i]["metadata"].(map[string]any)["name"].(string)
		_, err := kube.do(ctx, http.MethodPatch, topologyPath+"/"+name, objects[i])
		return err
	})
}

// clear leaves the cluster as it was before.
func (t *Throughput) clear(ctx context.Context) error {
	if _, err := t.kube.do(ctx, http.MethodDelete, "/api/v1/namespaces/default/pods",
		map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}); err != nil {
		return err
	}
	var objects []map[string]any
	for i := range t.shape.Nodes {
		empty := emptyTopology(t.shape, i)
		if used := t.nodes[empty.Node]; len(used.Acknowledged) > 0 {
			empty.Generation = used.Generation + 1
			objects = append(objects, empty.object(""))
		}
	}
	return t.write(ctx, t.kube, objects)
}
