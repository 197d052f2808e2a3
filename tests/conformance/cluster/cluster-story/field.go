package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	fieldPods = 20
	fieldCPUs = 20
	fieldNode = "node-01" // the only one with a zone of so many CPUs
)

// playField creates a pod that only one zone of two on one node of two holds, again and again, each when the one before
// has left. Every one must be bound there at the first try.
func (s *Story) playField(ctx context.Context) (*Result, error) {
	if err := s.waitForTopologies(ctx); err != nil {
		return nil, err
	}
	if err := s.waitForScheduler(ctx); err != nil {
		return nil, err
	}
	for i := 0; i < fieldPods; i++ {
		if !s.waitFor(ctx, s.isFieldFree) {
			return nil, fmt.Errorf("%s does not publish that it is free", fieldNode)
		}
		pod := PlannedPod{Name: fmt.Sprintf("field-%02d", i), Guaranteed: true,
			Parts: []Part{{Name: mainName, Milli: fieldCPUs * 1000, Memory: memoryBytes}}}
		s.setPlanned(pod)
		if err := s.create(ctx, pod); err != nil {
			return nil, err
		}
		if !s.waitFor(ctx, func() bool { return s.isDone(pod.Name) }) {
			s.fault("pod %s was neither placed nor denied", pod.Name)
			break
		}
		s.judgeField(pod.Name)
		// A pod that ends before its node has counted it keeps its room until topolet-extender checks on it, a minute later.
		if !s.waitFor(ctx, func() bool { return s.isAcknowledged(pod.Name) }) {
			return nil, fmt.Errorf("pod %s is not counted in the object of its node", pod.Name)
		}
		s.removeField(ctx, pod.Name)
	}
	return s.judgeFields()
}

func (s *Story) waitFor(ctx context.Context, condition func() bool) bool {
	for begin := time.Now(); time.Since(begin) < 30*time.Second && ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

func (s *Story) isFieldFree() bool {
	for _, zone := range s.lastZones(fieldNode) {
		if zone.Available < fieldCPUs {
			return false
		}
	}
	return true
}

func (s *Story) isAcknowledged(pod string) bool {
	s.mutex.Lock()
	record := *s.pods[pod]
	s.mutex.Unlock()
	last := s.lastPublished(record.Node)
	return last != nil && slices.Contains(last.Acknowledged, string(record.Object.UID)[:8])
}

func (s *Story) isDone(pod string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !s.pods[pod].PlacedAt.IsZero() || s.pods[pod].Denials > 0
}

func (s *Story) judgeField(pod string) {
	s.mutex.Lock()
	record := *s.pods[pod]
	s.mutex.Unlock()
	switch {
	case record.Node != fieldNode:
		s.fault("pod %s was bound to %s", pod, record.Node)
	case record.Denials > 0:
		s.fault("pod %s was denied by %s", pod, record.Node)
	case record.IsRejected:
		s.fault("pod %s was not bound at the first try", pod)
	default:
		s.count(&s.result.FirstTry)
	}
}

func (s *Story) removeField(ctx context.Context, pod string) {
	s.mutex.Lock()
	record := *s.pods[pod]
	s.mutex.Unlock()
	node := s.nodes[record.Node]
	done := make(chan struct{})
	s.later(0, node, func() {
		s.endPod(ctx, &Running{node: node, pod: record.Object, planned: s.plannedOf(pod)})
		close(done)
	})
	<-done
}

func (s *Story) judgeFields() (*Result, error) {
	s.result.SchedulerCPU = cpuSecondsOf(s.schedulerPID)
	s.countExtenders()
	s.countPods()
	return s.finish()
}
