package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podNamespace = "default"
	mainName     = "main"
	initPrefix   = "init-"
	memoryBytes  = int64(64 << 20)
)

// The nodes are a pool, as deploy/kubernetes/README.md makes one.
var (
	poolLabels     = map[string]string{"topolet.io/pool": "topolet"}
	poolTaint      = corev1.Taint{Key: "topolet.io/pool", Value: "topolet", Effect: corev1.TaintEffectNoSchedule}
	poolToleration = corev1.Toleration{Key: poolTaint.Key, Value: poolTaint.Value, Effect: poolTaint.Effect}
)

// PartKind is what a container is in its pod.
type PartKind int

const (
	Main    PartKind = iota
	Sidecar          // an init container that goes on running
	Initial          // one that ends before what comes after it begins
)

// Part is one container of a pod.
type Part struct {
	Name    string
	Kind    PartKind
	Milli   int64
	Memory  int64
	Devices int
}

// PlannedPod is one of the pods that arrive. Its parts are in the order in which a kubelet creates them.
type PlannedPod struct {
	Name       string
	Guaranteed bool // limits equal the requests, so that whole CPUs are a container's own
	Parts      []Part
	Lifetime   time.Duration // once it runs; 0: until the end
	ResizeTo   int64         // thousandths for the container `main`, half of its life long; 0: never
	Policy     string        // its annotation topolet.io/zone-policy
	Priority   string        // the name of its PriorityClass
	Labels     map[string]string
}

func (p PlannedPod) isExclusive(part Part) bool { return p.Guaranteed && part.Milli%1000 == 0 }

// wantsZones: whether some of its containers gets CPUs of its own.
func (p PlannedPod) wantsZones() bool {
	for _, part := range p.Parts {
		if p.isExclusive(part) {
			return true
		}
	}
	return false
}

// devices are what its container `main` requests.
func (p PlannedPod) devices() int {
	number := 0
	for _, part := range p.Parts {
		number += part.Devices
	}
	return number
}

// isSimple: it has one container, and no device.
func (p PlannedPod) isSimple() bool { return len(p.Parts) == 1 && p.devices() == 0 }

func isInitial(container string) bool { return strings.HasPrefix(container, initPrefix) }

func cpuOf(milli int64) resource.Quantity {
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}

func resourcesOf(milli, memory int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: cpuOf(milli),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}
}

func (p PlannedPod) resources(part Part) corev1.ResourceRequirements {
	requests := resourcesOf(part.Milli, part.Memory)
	var limits corev1.ResourceList
	if p.Guaranteed {
		limits = requests.DeepCopy()
	}
	if part.Devices > 0 {
		devices := *resource.NewQuantity(int64(part.Devices), resource.DecimalSI)
		requests[deviceResource], limits[deviceResource] = devices, devices
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func (p PlannedPod) container(part Part, image string) corev1.Container {
	container := corev1.Container{
		Name:            part.Name,
		Image:           image,
		ImagePullPolicy: corev1.PullNever,
		Command:         []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"},
		Resources:       p.resources(part),
	}
	switch part.Kind {
	case Initial:
		container.Command = []string{"sh", "-c", fmt.Sprintf("sleep %d", int(initialTime.Seconds()))}
	case Sidecar:
		always := corev1.ContainerRestartPolicyAlways
		container.RestartPolicy = &always
	}
	return container
}

func (p PlannedPod) object(options Options) *corev1.Pod {
	no, grace := false, int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: podNamespace, Labels: p.Labels},
		Spec: corev1.PodSpec{
			PriorityClassName:             p.Priority,
			SchedulerName:                 options.SchedulerName,
			Tolerations:                   []corev1.Toleration{poolToleration},
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   true,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
		},
	}
	for _, part := range p.Parts {
		container := p.container(part, options.Image)
		if part.Kind == Main {
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		} else {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		}
	}
	if p.Policy != "" {
		pod.Annotations = map[string]string{policyAnnotation: p.Policy}
	}
	return pod
}

// requests are what the scheduler counts for the pod: of init containers the most that is there at a time.
func (p PlannedPod) requests() Offer {
	var all, most Offer
	for _, part := range p.Parts {
		if part.Kind == Initial {
			most = Offer{max(most.MilliCPUs, all.MilliCPUs+part.Milli), max(most.Memory, all.Memory+part.Memory)}
		} else {
			all = Offer{all.MilliCPUs + part.Milli, all.Memory + part.Memory}
		}
	}
	return Offer{max(most.MilliCPUs, all.MilliCPUs), max(most.Memory, all.Memory)}
}
