package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	runtimePath = "/runtime.v1.RuntimeService/"
	imagePath   = "/runtime.v1.ImageService/"
	// The runtime must know it; it sets the variable CDI.
	cdiDevice = "topolet.io/parity=one"
)

// world is what the calls need to know of the place.
type world struct {
	image    string // a busybox that the runtime has
	remote   string // an image that can be pulled, or nothing
	logs     string // a directory for the containers' logs
	cgroups  string // the pods' cgroup parent
	checkout string // a path for a checkpoint
}

// teller tells a story over one socket and keeps what was answered.
type teller struct {
	world
	socket
	names
	told      []told
	pod       *cri.PodSandboxConfig
	sandbox   string
	container string
	onRunning func()
}

func (t *teller) ask(name, method string, request, reply proto.Message) proto.Message {
	got := t.socket.ask(method, request)
	text := t.apply(describe(got, as(reply)))
	t.told = append(t.told, told{name, unmeasured(text), got.status.GetCode()})
	if len(got.messages) == 1 {
		if err := proto.Unmarshal(got.messages[0], reply); err != nil {
			panic(err)
		}
	}
	return reply
}

func (t *teller) runtime(name, method string, request, reply proto.Message) proto.Message {
	return t.ask(name, runtimePath+method, request, reply)
}

func (t *teller) tell() {
	t.makePod()
	t.failToCreate()
	t.runContainer()
	t.useContainer()
	t.onRunning()
	t.endContainer()
	t.others()
	t.unusual()
	t.images()
	t.createWithout()
	t.endPod()
}

func (t *teller) makePod() {
	t.pod = &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: "parity", Uid: "parity-uid", Namespace: "parity", Attempt: 1},
		LogDirectory: t.logs,
		Labels:       map[string]string{"a": "1", "b": "2"},
		Annotations:  map[string]string{"c": "3"},
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent: t.cgroups + "/kubepods/burstable/podparity",
			SecurityContext: &cri.LinuxSandboxSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}},
			Resources: &cri.LinuxContainerResources{CpuShares: 512, CpuPeriod: 100000, CpuQuota: 100000},
		},
	}
	run := &cri.RunPodSandboxRequest{Config: t.pod}
	ran := t.runtime("run", "RunPodSandbox", run, &cri.RunPodSandboxResponse{}).(*cri.RunPodSandboxResponse)
	t.sandbox = ran.PodSandboxId
	t.runtime("run the same again", "RunPodSandbox", run, &cri.RunPodSandboxResponse{})
	t.runtime("run with an unknown handler", "RunPodSandbox",
		&cri.RunPodSandboxRequest{Config: t.pod, RuntimeHandler: "no-such"}, &cri.RunPodSandboxResponse{})
	for _, verbose := range []bool{false, true} {
		t.runtime(fmt.Sprint("status, verbose ", verbose), "PodSandboxStatus",
			&cri.PodSandboxStatusRequest{PodSandboxId: t.sandbox, Verbose: verbose}, &cri.PodSandboxStatusResponse{})
	}
	t.runtime("list", "ListPodSandbox", &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{Id: t.sandbox}},
		&cri.ListPodSandboxResponse{})
}

func (t *teller) config(name string) *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: name},
		Image:       &cri.ImageSpec{Image: t.image},
		Command:     []string{"sh", "-c"},
		Args:        []string{"echo said; trap 'exit 7' TERM; while :; do sleep 1000 & wait; done"},
		Envs:        []*cri.KeyValue{{Key: "K", Value: []byte("v")}},
		Labels:      map[string]string{"x": "1", "y": "2"},
		Annotations: map[string]string{"z": "3"},
		LogPath:     name + ".log",
		Linux: &cri.LinuxContainerConfig{
			Resources: &cri.LinuxContainerResources{CpuShares: 512, CpuPeriod: 100000, CpuQuota: 100000,
				MemoryLimitInBytes: 64 << 20, OomScoreAdj: 500, HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB"}}},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}},
		},
	}
}

func (t *teller) create(name string, config *cri.ContainerConfig) string {
	request := &cri.CreateContainerRequest{PodSandboxId: t.sandbox, Config: config, SandboxConfig: t.pod}
	reply := t.runtime("create: "+name, "CreateContainer", request, &cri.CreateContainerResponse{})
	return reply.(*cri.CreateContainerResponse).ContainerId
}

func (t *teller) failToCreate() {
	noImage := t.config("no-image")
	noImage.Image = nil
	t.create("no image", noImage)
	unknownImage := t.config("unknown-image")
	unknownImage.Image = &cri.ImageSpec{Image: "no.such/image:0"}
	t.create("an unknown image", unknownImage)
	noMetadata := t.config("")
	noMetadata.Metadata = nil
	t.create("no metadata", noMetadata)
	unknownDevice := t.config("unknown-device")
	unknownDevice.CDIDevices = []*cri.CDIDevice{{Name: "no.such/device=0"}}
	t.create("an unknown CDI device", unknownDevice)
	missingMount := t.config("missing-mount")
	missingMount.Mounts = []*cri.Mount{{ContainerPath: "relative", HostPath: "/no/such\x00path"}}
	t.create("a mount that is missing", missingMount)
	elsewhere := &cri.CreateContainerRequest{PodSandboxId: "no-such-pod", Config: t.config("x"), SandboxConfig: t.pod}
	t.runtime("create: in no pod", "CreateContainer", elsewhere, &cri.CreateContainerResponse{})
	t.failToStart()
}

// createWithout makes containers whose requests leave out what a runtime can do without.
func (t *teller) createWithout() {
	noUID := &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Name: "parity", Namespace: "parity"},
		Linux: t.pod.Linux, LogDirectory: t.logs}
	for _, without := range []struct {
		name string
		pod  *cri.PodSandboxConfig
	}{{"the pod's configuration", nil}, {"the pod's uid", noUID}} {
		request := &cri.CreateContainerRequest{PodSandboxId: t.sandbox, Config: t.config("without"), SandboxConfig: without.pod}
		made := t.runtime("create without "+without.name, "CreateContainer", request, &cri.CreateContainerResponse{})
		t.runtime("remove what was made without "+without.name, "RemoveContainer",
			&cri.RemoveContainerRequest{ContainerId: made.(*cri.CreateContainerResponse).ContainerId}, &cri.RemoveContainerResponse{})
	}
}

func (t *teller) failToStart() {
	unstartable := t.config("unstartable")
	unstartable.Command, unstartable.Args = []string{"/no/such/program"}, nil
	id := t.create("what can't be started", unstartable)
	t.runtime("start what can't be started", "StartContainer", &cri.StartContainerRequest{ContainerId: id},
		&cri.StartContainerResponse{})
	t.status("unstartable", id)
	t.runtime("remove what could not be started", "RemoveContainer", &cri.RemoveContainerRequest{ContainerId: id},
		&cri.RemoveContainerResponse{})
}

func (t *teller) status(name, id string) {
	for _, verbose := range []bool{false, true} {
		t.runtime(fmt.Sprint("status: ", name, ", verbose ", verbose), "ContainerStatus",
			&cri.ContainerStatusRequest{ContainerId: id, Verbose: verbose}, &cri.ContainerStatusResponse{})
	}
}

func (t *teller) start(name string) {
	t.runtime("start: "+name, "StartContainer", &cri.StartContainerRequest{ContainerId: t.container},
		&cri.StartContainerResponse{})
}

func (t *teller) runContainer() {
	t.container = t.create("a container", t.config("main"))
	t.create("the same again", t.config("main"))
	t.status("created", t.container)
	t.exec("before the start", 5, "true")
	t.update("before the start", &cri.LinuxContainerResources{CpuShares: 600})
	t.start("it")
	t.start("it again")
	t.status("running", t.container)
	t.runtime("list containers", "ListContainers",
		&cri.ListContainersRequest{Filter: &cri.ContainerFilter{Id: t.container}}, &cri.ListContainersResponse{})
}

func (t *teller) exec(name string, timeout int64, command ...string) {
	t.runtime("exec: "+name, "ExecSync",
		&cri.ExecSyncRequest{ContainerId: t.container, Cmd: command, Timeout: timeout}, &cri.ExecSyncResponse{})
}

func (t *teller) update(name string, resources *cri.LinuxContainerResources) {
	t.runtime("update: "+name, "UpdateContainerResources",
		&cri.UpdateContainerResourcesRequest{ContainerId: t.container, Linux: resources},
		&cri.UpdateContainerResourcesResponse{})
}

func (t *teller) useContainer() {
	t.exec("both outputs and a code", 10, "sh", "-c", "echo out; echo err >&2; exit 3")
	t.exec("a megabyte", 10, "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x")
	t.exec("no such program", 10, "/no/such/program")
	t.exec("nothing", 10)
	t.exec("longer than allowed", 1, "sleep", "30")
	t.runtime("exec", "Exec", &cri.ExecRequest{ContainerId: t.container, Cmd: []string{"sh"}, Stdout: true}, &cri.ExecResponse{})
	t.runtime("exec with nothing attached", "Exec", &cri.ExecRequest{ContainerId: t.container, Cmd: []string{"sh"}},
		&cri.ExecResponse{})
	t.runtime("attach", "Attach", &cri.AttachRequest{ContainerId: t.container, Stdout: true}, &cri.AttachResponse{})
	t.runtime("forward a port", "PortForward", &cri.PortForwardRequest{PodSandboxId: t.sandbox, Port: []int32{80}},
		&cri.PortForwardResponse{})
	t.runtime("reopen the log", "ReopenContainerLog", &cri.ReopenContainerLogRequest{ContainerId: t.container},
		&cri.ReopenContainerLogResponse{})
	t.update("more", &cri.LinuxContainerResources{CpuShares: 700, CpuPeriod: 100000, CpuQuota: 150000, MemoryLimitInBytes: 96 << 20})
	t.update("less memory than can be", &cri.LinuxContainerResources{MemoryLimitInBytes: 4096})
	t.update("nothing", &cri.LinuxContainerResources{})
	t.update("without resources", nil)
	t.status("updated", t.container)
	t.runtime("update the pod", "UpdatePodSandboxResources",
		&cri.UpdatePodSandboxResourcesRequest{PodSandboxId: t.sandbox, Resources: &cri.LinuxContainerResources{CpuShares: 800}},
		&cri.UpdatePodSandboxResourcesResponse{})
	t.runtime("checkpoint", "CheckpointContainer",
		&cri.CheckpointContainerRequest{ContainerId: t.container, Location: t.checkout, Timeout: 5}, &cri.CheckpointContainerResponse{})
	t.runtime("remove a running one's pod", "RemovePodSandbox", &cri.RemovePodSandboxRequest{PodSandboxId: "no-such-pod"},
		&cri.RemovePodSandboxResponse{})
}

func (t *teller) endContainer() {
	stop := &cri.StopContainerRequest{ContainerId: t.container, Timeout: 10}
	t.runtime("stop", "StopContainer", stop, &cri.StopContainerResponse{})
	t.runtime("stop again", "StopContainer", stop, &cri.StopContainerResponse{})
	t.status("stopped", t.container)
	t.start("a stopped one")
	t.exec("in a stopped one", 5, "true")
	t.update("a stopped one", &cri.LinuxContainerResources{CpuShares: 900})
	for _, name := range []string{"remove", "remove again"} {
		t.runtime(name, "RemoveContainer", &cri.RemoveContainerRequest{ContainerId: t.container}, &cri.RemoveContainerResponse{})
	}
	t.status("removed", t.container)
	t.update("a removed one", &cri.LinuxContainerResources{CpuShares: 900})
	t.start("a removed one")
}

// others are containers that end otherwise than by being stopped.
func (t *teller) others() {
	killed := t.config("killed")
	killed.Args = []string{"kill -KILL $$"}
	t.container = t.create("one that ends itself", killed)
	t.start("one that ends itself")
	for range 100 {
		got := &cri.ContainerStatusResponse{}
		answer := t.socket.ask(runtimePath+"ContainerStatus", &cri.ContainerStatusRequest{ContainerId: t.container})
		if len(answer.messages) == 1 && proto.Unmarshal(answer.messages[0], got) == nil &&
			got.GetStatus().GetState() == cri.ContainerState_CONTAINER_EXITED {
			break
		}
		pause()
	}
	t.status("ended itself", t.container)
	t.container = t.create("one in the pod's last hour", t.config("last"))
	t.start("one in the pod's last hour")
}

// unusual are containers that a kubelet makes seldom: with a CDI device, and with requests larger than most.
func (t *teller) unusual() {
	before := t.container
	device := t.config("device")
	device.CDIDevices = []*cri.CDIDevice{{Name: cdiDevice}}
	t.container = t.create("one with a CDI device", device)
	t.start("one with a CDI device")
	t.exec("what the CDI device brought", 10, "sh", "-c", "echo $CDI")
	large := t.config("large")
	large.Annotations["large"] = strings.Repeat("x", 12<<20)
	t.container = t.create("a large one", large)
	t.runtime("status of the large one", "ContainerStatus",
		&cri.ContainerStatusRequest{ContainerId: t.container, Verbose: true}, &cri.ContainerStatusResponse{})
	t.runtime("remove the large one", "RemoveContainer", &cri.RemoveContainerRequest{ContainerId: t.container},
		&cri.RemoveContainerResponse{})
	tooLarge := t.config("too-large")
	tooLarge.Annotations["large"] = strings.Repeat("x", 17<<20)
	t.create("one larger than the runtime takes", tooLarge)
	t.container = before
}

func (t *teller) endPod() {
	for _, name := range []string{"stop the pod", "stop the pod again"} {
		t.runtime(name, "StopPodSandbox", &cri.StopPodSandboxRequest{PodSandboxId: t.sandbox}, &cri.StopPodSandboxResponse{})
	}
	t.status("its pod stopped", t.container)
	t.create("in a stopped pod", t.config("late"))
	for _, name := range []string{"remove the pod", "remove the pod again"} {
		t.runtime(name, "RemovePodSandbox", &cri.RemovePodSandboxRequest{PodSandboxId: t.sandbox}, &cri.RemovePodSandboxResponse{})
	}
	t.runtime("status of a removed pod", "PodSandboxStatus", &cri.PodSandboxStatusRequest{PodSandboxId: t.sandbox},
		&cri.PodSandboxStatusResponse{})
}

func (t *teller) images() {
	t.ask("pull what can't be had", imagePath+"PullImage",
		&cri.PullImageRequest{Image: &cri.ImageSpec{Image: "127.0.0.1:1/no/such:0"}}, &cri.PullImageResponse{})
	t.ask("pull a bad name", imagePath+"PullImage",
		&cri.PullImageRequest{Image: &cri.ImageSpec{Image: "::"}}, &cri.PullImageResponse{})
	if t.remote == "" {
		return
	}
	spec := &cri.ImageSpec{Image: t.remote}
	t.ask("pull", imagePath+"PullImage", &cri.PullImageRequest{Image: spec}, &cri.PullImageResponse{})
	for _, name := range []string{"status of the pulled", "and once more"} {
		t.ask(name, imagePath+"ImageStatus", &cri.ImageStatusRequest{Image: spec, Verbose: true}, &cri.ImageStatusResponse{})
	}
	for _, name := range []string{"remove the image", "remove the image again"} {
		t.ask(name, imagePath+"RemoveImage", &cri.RemoveImageRequest{Image: spec}, &cri.RemoveImageResponse{})
	}
	t.ask("status of the removed", imagePath+"ImageStatus", &cri.ImageStatusRequest{Image: spec}, &cri.ImageStatusResponse{})
}
