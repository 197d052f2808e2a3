package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"time"
)

type callOptions struct {
	extender     string
	certificates string
	shape        Shape
	names        int
	pods         int
	touches      int
	restarts     int
	seed         int64
}

// Calls has all trips of one kind.
type Calls map[string][]Trip

func runCalls(ctx context.Context, arguments []string) error {
	var o callOptions
	flags := flag.NewFlagSet("calls", flag.ExitOnError)
	flags.StringVar(&o.extender, "extender", "", "the program topolet-extender")
	flags.StringVar(&o.certificates, "certificates", "", "what extender-certificates made, for 127.0.0.1 as well")
	flags.IntVar(&o.shape.Nodes, "nodes", 1000, "how many nodes publish what they have")
	flags.IntVar(&o.shape.Zones, "zones", 8, "how many NUMA nodes each has")
	flags.IntVar(&o.shape.CPUsPerZone, "cpus", 16, "how many CPUs each of these has")
	flags.IntVar(&o.names, "names", 500, "how many nodes the scheduler asks about, drawn for each pod")
	flags.IntVar(&o.pods, "pods", 2000, "how many pods are filtered, ranked and bound, after a tenth that does not count")
	flags.IntVar(&o.touches, "touches", 100, "how many objects are written anew in a second meanwhile")
	flags.IntVar(&o.restarts, "restarts", 5, "how often it is killed, and how long it takes until it is ready again")
	flags.Int64Var(&o.seed, "seed", 1, "of all that is random")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "topolet-bench.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	api := startAPIServer(topologies(o.shape, o.seed))
	defer api.server.CloseClientConnections()
	program, err := startProgram(o.extender, o.certificates, directory, api)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, logOf(directory))
	}
	defer program.stop()
	if err := measureCalls(ctx, o, api, program); err != nil {
		return fmt.Errorf("%w\n%s", err, logOf(directory))
	}
	return nil
}

func logOf(directory string) string {
	text, _ := os.ReadFile(directory + "/topolet-extender.log")
	return string(text[max(0, len(text)-2000):])
}

func measureCalls(ctx context.Context, o callOptions, api *APIServer, program *Program) error {
	scheduler, err := newScheduler(program.Address, o.certificates)
	if err != nil {
		return err
	}
	atRest := program.memory()
	touching, stop := context.WithCancel(ctx)
	defer stop()
	go touch(touching, o, api)
	random := rand.New(rand.NewSource(o.seed))
	if _, err := schedulePods(ctx, o, api, scheduler, random, "warm-up", o.pods/10); err != nil {
		return err
	}
	before, err := program.callSeconds()
	if err != nil {
		return err
	}
	cpu := -program.cpuSeconds()
	calls, err := schedulePods(ctx, o, api, scheduler, random, "pod", o.pods)
	if err != nil {
		return err
	}
	cpu += program.cpuSeconds()
	after, err := program.callSeconds()
	if err != nil {
		return err
	}
	fmt.Printf("%d names of %d nodes x %d zones, %d pods\n", o.names, o.shape.Nodes, o.shape.Zones, o.pods)
	fmt.Printf("  %-12s %10s %10s %18s %18s %14s %14s\n", "call", "p50 ms", "p99 ms", "with JSON p50 ms", "with JSON p99 ms",
		"own p50 <= ms", "own p99 <= ms")
	for _, verb := range []string{"filter", "prioritize", "bind"} {
		trips := calls[verb]
		fmt.Printf("  %-12s %10.2f %10.2f %18.2f %18.2f %14s %14s\n", verb, quantile(trips, 0.5, wire), quantile(trips, 0.99, wire),
			quantile(trips, 0.5, whole), quantile(trips, 0.99, whole), own(after[verb].quantile(0.5, before[verb])),
			own(after[verb].quantile(0.99, before[verb])))
	}
	fmt.Printf("  CPU of the extender: %.2f ms for each pod, objects that are written anew included\n", cpu*1000/float64(o.pods))
	fmt.Printf("  memory: %.1f MiB at rest, %.1f MiB after the pods\n", atRest, program.memory())
	stop()
	return measureRestarts(o, program)
}

func own(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", seconds*1000)
}

func measureRestarts(o callOptions, program *Program) error {
	var times []float64
	for i := 0; i < o.restarts; i++ {
		took, err := program.restart()
		if err != nil {
			return err
		}
		times = append(times, took.Seconds())
	}
	if len(times) > 0 {
		slices.Sort(times)
		fmt.Printf("  restart to ready: %.2f s (median of %d), %.2f s at most\n", times[len(times)/2], len(times), times[len(times)-1])
	}
	return nil
}

func touch(ctx context.Context, o callOptions, api *APIServer) {
	if o.touches == 0 {
		return
	}
	random := rand.New(rand.NewSource(o.seed + 1))
	tick := time.NewTicker(time.Second / time.Duration(o.touches))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			api.touch(random.Intn(o.shape.Nodes))
		}
	}
}

// schedulePods does with each pod what a scheduler does.
func schedulePods(ctx context.Context, o callOptions, api *APIServer, s *Scheduler, random *rand.Rand, name string,
	count int) (Calls, error) {
	calls := Calls{}
	for i := 0; i < count && ctx.Err() == nil; i++ {
		uid := fmt.Sprintf("%08x-4b0c-4c7e-9d3f-%012x", random.Uint32(), i)
		podName := fmt.Sprintf("%s-%d", name, i)
		pod := podObject(podName, uid, "topolet", "", random)
		api.addPod(pod, uid, cpusOf(pod))
		names := drawNames(o, random)
		var filtered filterResult
		trip, err := s.call("filter", extenderArgs{Pod: pod, NodeNames: &names}, &filtered)
		if err != nil {
			return nil, err
		}
		if filtered.Error != "" {
			return nil, fmt.Errorf("/filter: %s", filtered.Error)
		}
		calls["filter"] = append(calls["filter"], trip)
		if filtered.NodeNames == nil || len(*filtered.NodeNames) == 0 {
			return nil, fmt.Errorf("no node of %d is left for pod %s: %v", len(names), podName, filtered.FailedAndUnresolvableNodes)
		}
		var ranked []hostPriority
		if trip, err = s.call("prioritize", extenderArgs{Pod: pod, NodeNames: filtered.NodeNames}, &ranked); err != nil {
			return nil, err
		}
		calls["prioritize"] = append(calls["prioritize"], trip)
		best := slices.MaxFunc(ranked, func(a, b hostPriority) int { return int(a.Score - b.Score) })
		var bound bindingResult
		trip, err = s.call("bind", bindingArgs{PodName: podName, PodNamespace: "default", PodUID: uid, Node: best.Host}, &bound)
		if err != nil {
			return nil, err
		}
		if bound.Error != "" {
			return nil, fmt.Errorf("/bind: %s", bound.Error)
		}
		calls["bind"] = append(calls["bind"], trip)
	}
	return calls, ctx.Err()
}

func drawNames(o callOptions, random *rand.Rand) []string {
	names := make([]string, 0, o.names)
	first := random.Intn(o.shape.Nodes)
	// As kube-scheduler does: where it stopped for the pod before, and from there on.
	for i := 0; i < min(o.names, o.shape.Nodes); i++ {
		names = append(names, o.shape.nodeName((first+i)%o.shape.Nodes))
	}
	return names
}

func cpusOf(pod map[string]any) int {
	container := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	limits, isExclusive := container["resources"].(map[string]any)["limits"].(map[string]any)
	if !isExclusive {
		return 0
	}
	cpus := 0
	_, _ = fmt.Sscan(limits["cpu"].(string), &cpus)
	return cpus
}

func wire(t Trip) time.Duration  { return t.Wire }
func whole(t Trip) time.Duration { return t.Whole }

// quantile is in milliseconds.
func quantile(trips []Trip, q float64, of func(Trip) time.Duration) float64 {
	if len(trips) == 0 {
		return 0
	}
	var times []float64
	for _, trip := range trips {
		times = append(times, of(trip).Seconds()*1000)
	}
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))]
}
