// Plays a cluster on a real control plane: pods arrive in bursts, end and are resized, while topolet-agent publishes
// what each node has left and a scheduler reads it, by itself or with topolet-extender. Nodes are simulated by
// `topolet simulate`; a real kubelet may have one beside them. Prints one JSON object, and what is wrong on standard
// error.
//
// Exit status: 0 if nothing is wrong, 1 if something is or the run failed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Options are the flags.
type Options struct {
	Kubeconfig         string
	Topolet            string
	Agent              string
	Plugins            string
	Directory          string
	Image              string
	RealNode           string
	SchedulerFile      string
	SchedulerName      string
	Extender           string
	ExtenderKubeconfig string
	Certificates       string
	Service            string
	KillExtender       time.Duration
	Heal               string
	Case               string
	Nodes              int
	IsolatedNodes      int
	PlainNodes         int
	Pods               int
	Burst              int
	Between            time.Duration
	Settle             time.Duration
	Samples            int
	Seed               int64
	MustFit            bool
}

func parseOptions() Options {
	var o Options
	flag.StringVar(&o.Kubeconfig, "kubeconfig", "", "of a user who may do everything")
	flag.StringVar(&o.Topolet, "topolet", "", "the program topolet, for the simulated nodes")
	flag.StringVar(&o.Agent, "agent", "", "the program topolet-agent")
	flag.StringVar(&o.Plugins, "plugins", "", "the directory of topoletd's plugins")
	flag.StringVar(&o.Directory, "directory", "", "where sockets and logs are kept")
	flag.StringVar(&o.Image, "image", "", "an image with a shell, which the real node has")
	flag.StringVar(&o.RealNode, "real-node", "", "a node with a kubelet of its own")
	flag.StringVar(&o.SchedulerFile, "scheduler", "", "a file that will have the scheduler's PID, once it runs")
	flag.StringVar(&o.SchedulerName, "scheduler-name", "topology-aware", "whose pods the scheduler takes")
	flag.StringVar(&o.Extender, "extender", "", "the program topolet-extender, for a scheduler that asks it")
	flag.StringVar(&o.ExtenderKubeconfig, "extender-kubeconfig", "", "of the account that topolet-extender has")
	flag.StringVar(&o.Certificates, "certificates", "", "what extender-certificates made, for 127.0.0.1 as well")
	flag.StringVar(&o.Service, "service", "", "the address where the scheduler reaches the replicas of topolet-extender")
	flag.DurationVar(&o.KillExtender, "kill-extender", 20*time.Second, "how often the leading replica is killed")
	flag.StringVar(&o.Heal, "heal", "", "placement.heal of the simulated nodes; topoletd's default, if not told")
	flag.StringVar(&o.Case, "case", "",
		"field: a pod of 20 CPUs, 20 times, and two nodes of which one has a zone for it; preemption: a pod for which others "+
			"are evicted; registration: Nodes that are deleted and registered again")
	flag.IntVar(&o.Nodes, "nodes", 19, "how many nodes are simulated")
	flag.IntVar(&o.IsolatedNodes, "isolated-nodes", 0, "how many of them have CPUs that the kernel isolates")
	flag.IntVar(&o.PlainNodes, "plain-nodes", 0, "how many nodes beside them have neither topoletd nor an agent")
	flag.IntVar(&o.Pods, "pods", 500, "how many pods arrive")
	flag.IntVar(&o.Burst, "burst", 50, "how many of them at once")
	flag.DurationVar(&o.Between, "between", 12*time.Second, "from one burst to the next")
	flag.DurationVar(&o.Settle, "settle", time.Minute, "how long after the last event the pods placed must be what fits")
	flag.IntVar(&o.Samples, "samples", 400, "how many published objects are compared with what a replayed node grants")
	flag.Int64Var(&o.Seed, "seed", 1, "of all that is random")
	flag.BoolVar(&o.MustFit, "must-fit", false, "whether a pod that fits somewhere and waits is a fault")
	flag.Parse()
	return o
}

func main() {
	options := parseOptions()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := run(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster-story:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	if len(result.Faults) > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, options Options) (*Result, error) {
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000
	story, err := newStory(ctx, config, options)
	if err != nil {
		return nil, err
	}
	defer story.end()
	switch options.Case {
	case "field":
		return story.playField(ctx)
	case "preemption":
		return story.playPreemption(ctx)
	case "registration":
		return story.playRegistration(ctx)
	}
	if err := story.play(ctx); err != nil {
		return nil, err
	}
	return story.judge(ctx)
}
