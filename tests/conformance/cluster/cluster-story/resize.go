package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whoever asked for a resize that the node has no room for gives it up after so long.
const resizePatience = 5 * time.Second

// resize changes the CPUs of the container `main` in place. No scheduler is asked: the kubelet looks whether the node has
// so much, and topoletd whether a zone has.
func (s *Story) resize(ctx context.Context, running *Running) {
	name, node := running.pod.Name, running.node
	if s.hasEnded(name) || running.planned.ResizeTo == 0 {
		return
	}
	before := running.planned
	from := node.generation()
	if !s.patchResize(ctx, running, resized(before)) {
		return
	}
	if !s.fitsOn(node, running) {
		s.count(&s.result.ResizesDeferred)
		s.giveUpResize(ctx, running, before, from)
		return
	}
	if answer := s.must(node.apply(updateMain(running, resized(before)))); answer.Outcome == "denied" {
		if !before.Guaranteed {
			s.fault("the resize of pod %s, which has no CPUs of its own, was denied: %s", name, answer.Reason)
		}
		s.count(&s.result.ResizesDenied)
		s.giveUpResize(ctx, running, before, from)
		return
	}
	if before.Guaranteed && before.ResizeTo > before.Parts[0].Milli {
		node.disturb(byResize, node.generation())
	}
	running.planned = resized(before)
	s.patchStatus(ctx, running.pod, s.statusOf(running))
	node.wasUnsure(from)
	s.setPlanned(running.planned)
	s.count(&s.result.Resized)
}

func resized(planned PlannedPod) PlannedPod {
	parts := append([]Part(nil), planned.Parts...)
	parts[len(parts)-1].Milli = planned.ResizeTo
	planned.Parts = parts
	return planned
}

func updateMain(running *Running, planned PlannedPod) map[string]any {
	operation := map[string]any{"op": "update", "pod": string(running.pod.UID), "container": mainName,
		"cpu_request_milli": planned.ResizeTo}
	if planned.Guaranteed {
		operation["cpu_limit_milli"] = planned.ResizeTo
	}
	return operation
}

func (s *Story) patchResize(ctx context.Context, running *Running, planned PlannedPod) bool {
	body := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": mainName, "resources": planned.resources(planned.Parts[len(planned.Parts)-1])}}}}
	_, err := s.client.CoreV1().Pods(running.pod.Namespace).Patch(ctx, running.pod.Name, types.StrategicMergePatchType,
		encode(body), metav1.PatchOptions{}, "resize")
	if err != nil && ctx.Err() == nil {
		s.fault("pod %s could not be resized: %v", running.pod.Name, err)
	}
	return err == nil
}

// giveUpResize: until then the scheduler and the agent count what the pod asks for.
func (s *Story) giveUpResize(ctx context.Context, running *Running, before PlannedPod, from uint64) {
	s.later(resizePatience, running.node, func() {
		if !s.hasEnded(running.pod.Name) {
			s.patchResize(ctx, running, before)
		}
		running.node.wasUnsure(from)
	})
}

// fitsOn: whether the node offers as much to pods as all of them request, with the resize.
func (s *Story) fitsOn(node *Node, running *Running) bool {
	sum := resized(running.planned).Parts[0].Milli - running.planned.Parts[0].Milli
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, record := range s.pods {
		if record.Node == node.Name && !record.HasEnded {
			sum += s.planned[record.Object.Name].requests().MilliCPUs
		}
	}
	return sum <= node.Offer.MilliCPUs
}
