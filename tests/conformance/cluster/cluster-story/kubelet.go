package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A kubelet asks again after so long where a container could not be created.
const createBackOff = 10 * time.Second

// A container takes so long to end.
const stopTime = time.Second

// Running is a pod on a simulated node. Only the node's worker knows it.
type Running struct {
	node    *Node
	pod     *corev1.Pod
	planned PlannedPod
	started map[string]bool
	over    map[string]bool   // init containers that have ended
	denied  map[string]string // why a container is not there
}

// serveNode does the node's work, one piece after the other, as a kubelet's pod workers would; time passes meanwhile.
func (s *Story) serveNode(ctx context.Context, node *Node) {
	defer s.workers.Done()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case work := <-node.work:
			work()
		case <-tick.C:
			s.must(node.apply(map[string]any{"op": "clock", "advance_s": 1}))
		}
	}
}

func (s *Story) must(answer Answer, err error) Answer {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster-story:", err)
		os.Exit(1)
	}
	return answer
}

// later queues work for the node.
func (s *Story) later(delay time.Duration, node *Node, work func()) {
	if delay == 0 {
		node.work <- work
		return
	}
	time.AfterFunc(delay, func() { node.work <- work })
}

func runPod(pod *corev1.Pod, planned PlannedPod) map[string]any {
	qos := "burstable"
	if planned.Guaranteed {
		qos = "guaranteed"
	}
	operation := map[string]any{"op": "run_pod", "pod": string(pod.UID), "name": pod.Name, "namespace": pod.Namespace,
		"qos": qos, "resources": podResources(planned)}
	if len(pod.Annotations) > 0 {
		operation["annotations"] = pod.Annotations
	}
	return operation
}

// podResources is what the sandbox tells the runtime of the whole pod.
func podResources(planned PlannedPod) map[string]any {
	var milli, memory, peakMilli, peakMemory int64
	for _, part := range planned.Parts {
		if part.Kind == Initial {
			peakMilli, peakMemory = max(peakMilli, milli+part.Milli), max(peakMemory, memory+part.Memory)
		} else {
			milli, memory = milli+part.Milli, memory+part.Memory
		}
	}
	milli, memory = max(milli, peakMilli), max(memory, peakMemory)
	resources := map[string]any{"cpu_request_milli": milli, "memory_request": memory}
	if planned.Guaranteed {
		resources["cpu_limit_milli"], resources["memory_limit"] = milli, memory
	}
	return resources
}

func createContainer(uid string, planned PlannedPod, part Part, devices []Device) map[string]any {
	operation := map[string]any{"op": "create", "pod": uid, "container": part.Name,
		"cpu_request_milli": part.Milli, "memory_request": part.Memory}
	if planned.Guaranteed {
		operation["cpu_limit_milli"], operation["memory_limit"] = part.Milli, part.Memory
	}
	if part.Kind == Initial {
		operation["init"] = true
	}
	var paths []string
	for _, device := range devices[:min(len(devices), part.Devices)] {
		paths = append(paths, device.Path)
	}
	if paths != nil {
		operation["devices"] = paths
	}
	return operation
}

// admit gives the pod its devices, as a kubelet does before anything else, and begins to create its containers.
func (s *Story) admit(ctx context.Context, node *Node, pod *corev1.Pod) {
	running := &Running{node: node, pod: pod, planned: s.plannedOf(pod.Name), started: map[string]bool{},
		over: map[string]bool{}, denied: map[string]string{}}
	if !node.devices.give(pod.Name, running.planned.devices()) {
		s.fault("pod %s was bound to %s, which has too few devices left", pod.Name, node.Name)
		s.deletePod(ctx, pod)
		return
	}
	s.must(node.apply(runPod(pod, running.planned)))
	s.advance(ctx, running)
}

// next are the containers that a kubelet creates now: of those before the main ones, one after the other.
func (r *Running) next() []Part {
	var mains []Part
	for _, part := range r.planned.Parts {
		switch {
		case part.Kind == Main && !r.started[part.Name]:
			mains = append(mains, part)
		case part.Kind != Main && !r.started[part.Name]:
			return []Part{part}
		case part.Kind == Initial && !r.over[part.Name]:
			return nil
		}
	}
	return mains
}

func (r *Running) isComplete() bool {
	return len(r.started) == len(r.planned.Parts) && len(r.next()) == 0
}

// advance creates the containers that come next. Denied, it tries again, as a kubelet does.
func (s *Story) advance(ctx context.Context, running *Running) {
	if s.hasEnded(running.pod.Name) {
		return
	}
	parts := running.next()
	for _, part := range parts {
		s.createPart(ctx, running, part)
	}
	s.patchStatus(ctx, running.pod, s.statusOf(running))
	switch {
	case running.isComplete():
		s.running(ctx, running)
	case len(running.denied) > 0:
		s.later(createBackOff, running.node, func() { s.advance(ctx, running) })
	case len(parts) > 0 && parts[0].Kind == Sidecar:
		s.advance(ctx, running)
	}
}

func (s *Story) createPart(ctx context.Context, running *Running, part Part) {
	node, pod := running.node, running.pod
	answer := s.must(node.apply(createContainer(string(pod.UID), running.planned, part, node.devices.of(pod.Name))))
	if answer.Outcome != "placed" {
		running.denied[part.Name] = answer.Reason
		s.denied(running, part, answer.Reason)
		return
	}
	delete(running.denied, part.Name)
	running.started[part.Name] = true
	if !node.IsPlain {
		s.checkZone(running, part, answer)
	} else if running.planned.isExclusive(part) && pod.Annotations[policyAnnotation] == "single" && s.hasExtender() {
		s.wrongZone("pod %s, which wants one zone, was bound to %s, which publishes none", pod.Name, node.Name)
	}
	if part.Kind == Initial {
		s.later(initialTime, node, func() { s.endInitial(ctx, running, part) })
	}
}

func (s *Story) endInitial(ctx context.Context, running *Running, part Part) {
	if s.hasEnded(running.pod.Name) {
		return
	}
	s.must(running.node.apply(map[string]any{"op": "exit", "pod": string(running.pod.UID), "container": part.Name}))
	running.over[part.Name] = true
	s.patchStatus(ctx, running.pod, s.statusOf(running))
	s.advance(ctx, running)
}

// running: all containers of the pod are there.
func (s *Story) running(ctx context.Context, running *Running) {
	if !s.placed(running.pod.Name) {
		return
	}
	planned := running.planned
	if planned.Lifetime == 0 {
		return
	}
	s.later(planned.Lifetime, running.node, func() { s.endPod(ctx, running) })
	if planned.ResizeTo != 0 {
		s.later(planned.Lifetime/2, running.node, func() { s.resize(ctx, running) })
	}
}

func (s *Story) endPod(ctx context.Context, running *Running) {
	node, pod := running.node, running.pod
	s.must(node.apply(map[string]any{"op": "remove_pod", "pod": string(pod.UID)}))
	node.devices.takeBack(pod.Name)
	s.patchStatus(ctx, pod, s.endedStatus(running))
	s.deletePod(ctx, pod)
}

// onDeletion stops a pod that somebody else than this program deletes, which is a scheduler that evicts it.
func (s *Story) onDeletion(ctx context.Context, pod *corev1.Pod) {
	s.mutex.Lock()
	record := s.pods[pod.Name]
	isNew := record != nil && !record.IsStopped && !record.HasEnded
	if isNew {
		record.IsStopped, record.Object, record.Node = true, pod, pod.Spec.NodeName
		s.result.Evicted++
		if s.onEvicted != nil {
			s.onEvicted(pod)
		}
	}
	s.mutex.Unlock()
	if !isNew {
		return
	}
	node := s.nodes[pod.Spec.NodeName]
	s.later(stopTime, node, func() {
		if !s.hasEnded(pod.Name) {
			s.endPod(ctx, &Running{node: node, pod: pod, planned: s.plannedOf(pod.Name)})
		}
	})
}

func (s *Story) deletePod(ctx context.Context, pod *corev1.Pod) {
	s.mutex.Lock()
	s.pods[pod.Name].IsStopped = true
	s.mutex.Unlock()
	var none int64
	if err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		s.fault("pod %s could not be deleted: %v", pod.Name, err)
	}
	s.ended(pod.Name)
}

func (s *Story) patchStatus(ctx context.Context, pod *corev1.Pod, status map[string]any) {
	_, err := s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
		encode(map[string]any{"status": status}), metav1.PatchOptions{}, "status")
	if err != nil && ctx.Err() == nil {
		s.fault("the status of pod %s could not be written: %v", pod.Name, err)
	}
}

// followRealPod sees what the real kubelet did with a pod, and ends it when it has run long enough.
func (s *Story) followRealPod(ctx context.Context, pod *corev1.Pod) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "CreateContainerError" {
			s.deniedOnce(pod.Name, waiting.Message)
		}
	}
	if pod.Status.Phase != corev1.PodRunning || !s.placed(pod.Name) {
		return
	}
	s.count(&s.result.PlacedByKubelet)
	if lifetime := s.plannedOf(pod.Name).Lifetime; lifetime != 0 {
		time.AfterFunc(lifetime, func() {
			if err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
				s.fault("pod %s could not be deleted: %v", pod.Name, err)
			}
			s.ended(pod.Name)
		})
	}
}
