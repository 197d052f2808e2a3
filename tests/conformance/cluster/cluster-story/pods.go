package main

import (
	"fmt"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podNamespace  = "default"
	containerName = "main"
	memoryBytes   = int64(64 << 20)
)

// The nodes are a pool, as deploy/kubernetes/README.md makes one.
var (
	poolLabels     = map[string]string{"topolet.io/pool": "topolet"}
	poolTaint      = corev1.Taint{Key: "topolet.io/pool", Value: "topolet", Effect: corev1.TaintEffectNoSchedule}
	poolToleration = corev1.Toleration{Key: poolTaint.Key, Value: poolTaint.Value, Effect: poolTaint.Effect}
)

// PlannedPod is one of the pods that arrive.
type PlannedPod struct {
	Name      string
	Milli     int64
	Exclusive bool          // whole CPUs and limits equal to the requests
	Lifetime  time.Duration // once it runs; 0: until the end
	ResizeTo  int64         // thousandths, half of its life long; 0: never
	Policy    string        // its annotation topolet.io/zone-policy
}

// So many bursts stay until the end.
const stayingBursts = 3

// plan makes pods of mixed sizes. Those of the last bursts stay, so that in the end there are more than fit.
func plan(options Options) []PlannedPod {
	random := rand.New(rand.NewSource(options.Seed))
	sizes := []int64{1, 1, 2, 2, 2, 3, 4, 4, 6, 8}
	var pods []PlannedPod
	for i := 0; i < options.Pods; i++ {
		pod := PlannedPod{Name: fmt.Sprintf("pod-%03d", i)}
		if random.Intn(5) == 0 {
			pod.Milli = int64(100 + random.Intn(15)*100)
			if random.Intn(2) == 0 {
				pod.ResizeTo = int64(100 + random.Intn(15)*100)
			}
		} else {
			pod.Exclusive = true
			pod.Milli = sizes[random.Intn(len(sizes))] * 1000
			if options.PlainNodes > 0 {
				pod.Policy = []string{"any", "single", "single"}[i%3]
			}
		}
		if i < options.Pods-stayingBursts*options.Burst {
			pod.Lifetime = time.Duration(15+random.Intn(45)) * time.Second
		}
		pods = append(pods, pod)
	}
	return pods
}

func cpuOf(milli int64) resource.Quantity {
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}

func (p PlannedPod) resources(milli int64) corev1.ResourceRequirements {
	memory := *resource.NewQuantity(memoryBytes, resource.BinarySI)
	requests := corev1.ResourceList{corev1.ResourceCPU: cpuOf(milli), corev1.ResourceMemory: memory}
	if !p.Exclusive {
		return corev1.ResourceRequirements{Requests: requests}
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: requests.DeepCopy()}
}

func (p PlannedPod) object(options Options) *corev1.Pod {
	no, grace := false, int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: podNamespace},
		Spec: corev1.PodSpec{
			SchedulerName:                 options.SchedulerName,
			Tolerations:                   []corev1.Toleration{poolToleration},
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   true,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name:            containerName,
				Image:           options.Image,
				ImagePullPolicy: corev1.PullNever,
				Command:         []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"},
				Resources:       p.resources(p.Milli),
			}},
		},
	}
	if p.Policy != "" {
		pod.Annotations = map[string]string{policyAnnotation: p.Policy}
	}
	return pod
}
