// A plugin of a runtime's Node Resource Interface that gives every container the same CPUs, as koordlet, nri-plugins and
// dra-driver-cpu give it theirs. It is made with NRI's own stub, which speaks both of NRI's dialects: up to NRI 0.11
// events come as StateChange, later each has a method.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
)

// creator sets CPUs and memory nodes of containers that are created.
type creator struct {
	cpus, mems string
	pods       string        // the beginning of the names of the pods whose containers it sets
	late       time.Duration // how long each of its answers takes
}

// updater sets them again whenever the runtime updates a container.
type updater struct{ creator }

// Synchronize only shows that the runtime has begun to ask.
func (creator) Synchronize(_ context.Context, _ []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	fmt.Println("synchronize", len(containers))
	return nil, nil
}

func (c creator) isSet(pod *api.PodSandbox) bool { return strings.HasPrefix(pod.GetName(), c.pods) }

func (c creator) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	fmt.Println("create", pod.GetName(), container.GetName())
	time.Sleep(c.late)
	adjustment := &api.ContainerAdjustment{}
	if !c.isSet(pod) {
		return adjustment, nil, nil
	}
	if c.cpus != "" {
		adjustment.SetLinuxCPUSetCPUs(c.cpus)
	}
	if c.mems != "" {
		adjustment.SetLinuxCPUSetMems(c.mems)
	}
	return adjustment, nil, nil
}

func (u updater) UpdateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container, asked *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	fmt.Println("update", pod.GetName(), container.GetName(), "cpus", asked.GetCpu().GetCpus())
	if !u.isSet(pod) {
		return nil, nil
	}
	update := &api.ContainerUpdate{}
	update.SetContainerId(container.GetId())
	if u.cpus != "" {
		update.SetLinuxCPUSetCPUs(u.cpus)
	}
	if u.mems != "" {
		update.SetLinuxCPUSetMems(u.mems)
	}
	return []*api.ContainerUpdate{update}, nil
}

func main() {
	socket := flag.String("socket", "", "the runtime's NRI socket")
	name := flag.String("name", "adversary", "the plugin's name")
	index := flag.String("index", "10", "two digits: the place among the plugins")
	updates := flag.Bool("updates", false, "set them again at updates, and not only when containers are created")
	var set creator
	flag.StringVar(&set.cpus, "cpus", "", "the CPUs that it sets; none: it leaves them")
	flag.StringVar(&set.mems, "mems", "", "the memory nodes that it sets; none: it leaves them")
	flag.StringVar(&set.pods, "pods", "", "only those of pods whose names begin with this")
	flag.DurationVar(&set.late, "late", 0, "how long it takes over a create")
	flag.Parse()
	var plugin any = set
	if *updates {
		plugin = updater{set}
	}
	if err := run(plugin, *socket, *name, *index); err != nil {
		fmt.Fprintln(os.Stderr, "nri-plugin:", err)
		os.Exit(1)
	}
}

func run(plugin any, socket, name, index string) error {
	made, err := stub.New(plugin, stub.WithSocketPath(socket), stub.WithPluginName(name), stub.WithPluginIdx(index))
	if err != nil {
		return err
	}
	return made.Run(context.Background())
}
