// One pod with one container in a runtime, made, changed and looked at through the CRI: what a test of a runtime without
// a client of its own needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const usage = `usage: container -socket SOCKET COMMAND
  run POD QOS MILLI LIMIT_MILLI   makes the container, and the pod unless it is there, starts it, and prints its id
  create POD QOS MILLI LIMIT_MILLI   the same without the start
  time POD QOS MILLI LIMIT_MILLI COUNT   makes, starts and removes containers one after the other; prints of each how many
                                  microseconds its create and its start took
  start ID
  resize ID MILLI LIMIT_MILLI
  stop ID
  remove POD
  process POD                     prints the PID of its container, if that runs
  pull IMAGE
`

type client struct {
	cri.RuntimeServiceClient
	images  cri.ImageServiceClient
	image   string
	cgroups string
	logs    string
	name    string
}

func main() {
	socket := flag.String("socket", "", "of the runtime, or of topoletd")
	image := flag.String("image", "", "of the containers")
	cgroups := flag.String("cgroups", "", "the cgroup that has kubepods")
	logs := flag.String("logs", "/tmp", "where the containers' logs go")
	name := flag.String("name", "main", "of the container in its pod")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	connection, err := grpc.NewClient("unix://"+*socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		made := client{cri.NewRuntimeServiceClient(connection), cri.NewImageServiceClient(connection), *image, *cgroups, *logs, *name}
		made.awaitServing(ctx)
		err = made.do(ctx, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// A containerd that has just been started takes calls before it serves the CRI. A kubelet tries again.
func (c client) awaitServing(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := c.Version(ctx, &cri.VersionRequest{})
		if err == nil || !strings.Contains(err.Error(), "server is not initialized yet") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c client) do(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("no command; see --help")
	}
	switch command, rest := args[0], args[1:]; command {
	case "run", "create":
		return c.run(ctx, rest, command == "run")
	case "time":
		return c.time(ctx, rest)
	case "start":
		_, err := c.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: rest[0]})
		return err
	case "resize":
		return c.resize(ctx, rest)
	case "stop":
		_, err := c.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: rest[0], Timeout: 1})
		return err
	case "remove":
		return c.remove(ctx, rest[0])
	case "process":
		return c.process(ctx, rest[0])
	case "pull":
		_, err := c.images.PullImage(ctx, &cri.PullImageRequest{Image: named(rest[0])})
		return err
	}
	return errors.New("no such command; see --help")
}

// CRI-O goes by the second name, which the kubelet sends as well.
func named(image string) *cri.ImageSpec {
	return &cri.ImageSpec{Image: image, UserSpecifiedImage: image}
}

// resources as the kubelet sends them.
func resources(args []string, qos string) (*cri.LinuxContainerResources, error) {
	milli, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return nil, err
	}
	limit, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return nil, err
	}
	score := map[string]int64{"guaranteed": -997, "burstable": 900, "besteffort": 1000}[qos]
	asked := &cri.LinuxContainerResources{CpuPeriod: 100000, CpuShares: max(2, milli*1024/1000), OomScoreAdj: score}
	if limit > 0 {
		asked.CpuQuota = limit * 100
		asked.MemoryLimitInBytes = 64 << 20
	}
	return asked, nil
}

func (c client) config(pod, qos string) *cri.PodSandboxConfig {
	class := qos + "/"
	if qos == "guaranteed" {
		class = ""
	}
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: pod, Uid: "uid-" + pod, Namespace: "default"},
		LogDirectory: c.logs,
		Labels: map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.pod.uid": "uid-" + pod,
			"io.kubernetes.pod.namespace": "default"},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: c.cgroups + "/kubepods/" + class + "poduid-" + pod,
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{
				Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER, Ipc: cri.NamespaceMode_POD}},
		},
	}
}

// sandbox returns the pod's, which it makes unless it is there.
func (c client) sandbox(ctx context.Context, config *cri.PodSandboxConfig) (string, error) {
	listed, err := c.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.uid": config.Metadata.Uid},
		State:         &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}}})
	if err != nil {
		return "", err
	}
	if len(listed.Items) > 0 {
		return listed.Items[0].Id, nil
	}
	made, err := c.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: config})
	return made.GetPodSandboxId(), err
}

// creation is the request for a container as POD QOS MILLI LIMIT_MILLI say; it makes the pod unless it is there.
func (c client) creation(ctx context.Context, args []string) (*cri.CreateContainerRequest, error) {
	config := c.config(args[0], args[1])
	asked, err := resources(args[2:], args[1])
	if err != nil {
		return nil, err
	}
	sandbox, err := c.sandbox(ctx, config)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"io.kubernetes.container.name": c.name}
	maps.Copy(labels, config.Labels)
	return &cri.CreateContainerRequest{PodSandboxId: sandbox,
		SandboxConfig: config, Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: c.name}, Image: named(c.image), Labels: labels, LogPath: args[0] + ".log",
			Command: []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"},
			Linux: &cri.LinuxContainerConfig{Resources: asked, SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: config.Linux.SecurityContext.NamespaceOptions}}}}, nil
}

func (c client) run(ctx context.Context, args []string, starts bool) error {
	if len(args) != 4 {
		return errors.New("run and create need POD QOS MILLI LIMIT_MILLI")
	}
	request, err := c.creation(ctx, args)
	if err != nil {
		return err
	}
	created, err := c.CreateContainer(ctx, request)
	if err != nil {
		return err
	}
	fmt.Println(created.ContainerId)
	if !starts {
		return nil
	}
	_, err = c.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: created.ContainerId})
	return err
}

func (c client) time(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return errors.New("time needs POD QOS MILLI LIMIT_MILLI COUNT")
	}
	count, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	request, err := c.creation(ctx, args[:4])
	if err != nil {
		return err
	}
	for i := range count {
		request.Config.Metadata.Attempt = uint32(i)
		begin := time.Now()
		created, err := c.CreateContainer(ctx, request)
		if err != nil {
			return err
		}
		middle := time.Now()
		if _, err := c.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
			return err
		}
		fmt.Println(middle.Sub(begin).Microseconds(), time.Since(middle).Microseconds())
		if _, err := c.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: created.ContainerId}); err != nil {
			return err
		}
	}
	return c.remove(ctx, args[0])
}

func (c client) resize(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("resize needs ID MILLI LIMIT_MILLI")
	}
	asked, err := resources(args[1:], "")
	if err != nil {
		return err
	}
	_, err = c.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: args[0], Linux: asked})
	return err
}

func (c client) remove(ctx context.Context, pod string) error {
	listed, err := c.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	for _, sandbox := range listed.Items {
		if sandbox.Metadata.Name != pod {
			continue
		}
		if _, err := c.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
			return err
		}
		if _, err := c.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
			return err
		}
	}
	return nil
}

func (c client) process(ctx context.Context, pod string) error {
	listed, err := c.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod}}})
	if err != nil {
		return err
	}
	for _, container := range listed.Containers {
		if container.State != cri.ContainerState_CONTAINER_RUNNING || container.Metadata.Name != c.name {
			continue
		}
		status, err := c.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: container.Id, Verbose: true})
		if err != nil {
			return err
		}
		var info struct{ Pid int }
		if err := json.Unmarshal([]byte(status.Info["info"]), &info); err != nil {
			return err
		}
		fmt.Println(info.Pid)
	}
	return nil
}
