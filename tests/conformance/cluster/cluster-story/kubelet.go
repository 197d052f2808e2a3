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

func isExclusive(pod *corev1.Pod) bool { return len(pod.Spec.Containers[0].Resources.Limits) > 0 }

func runPod(pod *corev1.Pod) map[string]any {
	qos := "burstable"
	if isExclusive(pod) {
		qos = "guaranteed"
	}
	operation := map[string]any{"op": "run_pod", "pod": string(pod.UID), "name": pod.Name, "namespace": pod.Namespace,
		"qos": qos}
	if len(pod.Annotations) > 0 {
		operation["annotations"] = pod.Annotations
	}
	return operation
}

func createContainer(pod *corev1.Pod) map[string]any {
	resources := pod.Spec.Containers[0].Resources
	operation := map[string]any{
		"op": "create", "pod": string(pod.UID), "container": containerName,
		"cpu_request_milli": resources.Requests.Cpu().MilliValue(),
		"memory_request":    resources.Requests.Memory().Value(),
	}
	if len(resources.Limits) > 0 {
		operation["cpu_limit_milli"] = resources.Limits.Cpu().MilliValue()
		operation["memory_limit"] = resources.Limits.Memory().Value()
	}
	return operation
}

// place creates the pod's container on its node. Denied, it tries again, as a kubelet does.
func (s *Story) place(ctx context.Context, node *Node, pod *corev1.Pod, isFirst bool) {
	if s.hasEnded(pod.Name) {
		return
	}
	if isFirst {
		s.must(node.apply(runPod(pod)))
	}
	answer := s.must(node.apply(createContainer(pod)))
	if answer.Outcome != "placed" {
		s.denied(pod.Name, answer.Reason)
		s.patchStatus(ctx, pod, map[string]any{
			"phase": "Pending",
			"containerStatuses": []any{map[string]any{
				"name": containerName, "image": s.options.Image, "imageID": "", "ready": false, "restartCount": 0,
				"state": map[string]any{"waiting": map[string]any{"reason": "CreateContainerError", "message": answer.Reason}},
			}},
		})
		s.later(createBackOff, node, func() { s.place(ctx, node, pod, false) })
		return
	}
	if !node.IsPlain {
		s.checkZone(node, pod, answer)
	} else if isExclusive(pod) && pod.Annotations[policyAnnotation] == "single" && s.hasExtender() {
		s.wrongZone("pod %s, which wants one zone, was bound to %s, which publishes none", pod.Name, node.Name)
	}
	s.patchStatus(ctx, pod, s.runningStatus(pod.Spec.Containers[0].Resources))
	s.placed(pod.Name)
	planned := s.planned[pod.Name]
	if planned.Lifetime == 0 {
		return
	}
	s.later(planned.Lifetime, node, func() { s.endPod(ctx, node, pod) })
	if planned.ResizeTo != 0 {
		s.later(planned.Lifetime/2, node, func() { s.resize(ctx, node, pod, planned) })
	}
}

func (s *Story) runningStatus(resources corev1.ResourceRequirements) map[string]any {
	return map[string]any{
		"phase":      "Running",
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		"containerStatuses": []any{map[string]any{
			"name": containerName, "image": s.options.Image, "imageID": "", "ready": true, "restartCount": 0,
			"state":              map[string]any{"running": map[string]any{}},
			"resources":          resources,
			"allocatedResources": resources.Requests,
		}},
	}
}

func (s *Story) resize(ctx context.Context, node *Node, pod *corev1.Pod, planned PlannedPod) {
	resources := planned.resources(planned.ResizeTo)
	body := map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": containerName, "resources": resources}}}}
	if _, err := s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, encode(body),
		metav1.PatchOptions{}, "resize"); err != nil {
		s.fault("pod %s could not be resized: %v", pod.Name, err)
		return
	}
	answer := s.must(node.apply(map[string]any{"op": "update", "pod": string(pod.UID), "container": containerName,
		"cpu_request_milli": planned.ResizeTo}))
	if answer.Outcome == "denied" {
		s.fault("the resize of pod %s, which has no CPUs of its own, was denied: %s", pod.Name, answer.Reason)
		return
	}
	s.patchStatus(ctx, pod, s.runningStatus(resources))
	s.count(&s.result.Resized)
}

func (s *Story) endPod(ctx context.Context, node *Node, pod *corev1.Pod) {
	s.must(node.apply(map[string]any{"op": "remove_pod", "pod": string(pod.UID)}))
	s.patchStatus(ctx, pod, map[string]any{"phase": "Succeeded", "containerStatuses": []any{map[string]any{
		"name": containerName, "image": s.options.Image, "imageID": "", "ready": false, "restartCount": 0,
		"state": map[string]any{"terminated": map[string]any{"exitCode": 0}},
	}}})
	s.deletePod(ctx, pod)
}

func (s *Story) deletePod(ctx context.Context, pod *corev1.Pod) {
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
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "CreateContainerError" {
			s.deniedOnce(pod.Name, waiting.Message)
		}
	}
	if pod.Status.Phase != corev1.PodRunning || !s.placed(pod.Name) {
		return
	}
	s.count(&s.result.PlacedByKubelet)
	if lifetime := s.planned[pod.Name].Lifetime; lifetime != 0 {
		time.AfterFunc(lifetime, func() {
			if err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
				s.fault("pod %s could not be deleted: %v", pod.Name, err)
			}
			s.ended(pod.Name)
		})
	}
}
