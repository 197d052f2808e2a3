package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controller keeps so many pods of low priority there: a pod that is deleted is replaced at once, before it has ended, as
// a ReplicaSet's is.
type controller struct {
	story  *Story
	ctx    context.Context
	prefix string

	mutex   sync.Mutex // of what follows
	made    int
	there   []string
	evicted []*corev1.Pod
}

// fill makes the pods, and waits until all run and their node counts them.
func (c *controller) fill() error {
	for range lowPods {
		if err := c.make(); err != nil {
			return err
		}
	}
	isCounted := func() bool {
		return c.story.arePlaced(c.current()) && !slices.ContainsFunc(c.current(), func(pod string) bool {
			return !c.story.isAcknowledged(pod)
		})
	}
	if !c.story.waitLong(c.ctx, isCounted) {
		return fmt.Errorf("%d pods of low priority do not run", lowPods)
	}
	return nil
}

func (c *controller) make() error {
	c.mutex.Lock()
	c.made++
	pod := PlannedPod{Name: fmt.Sprintf("%s-%03d", c.prefix, c.made), Guaranteed: true, Priority: lowClass,
		Parts: []Part{{Name: mainName, Milli: 1000, Memory: memoryBytes}}}
	c.there = append(c.there, pod.Name)
	c.mutex.Unlock()
	c.story.setPlanned(pod)
	return c.story.create(c.ctx, pod)
}

func (c *controller) replace(pod *corev1.Pod) {
	c.mutex.Lock()
	c.there = slices.DeleteFunc(c.there, func(name string) bool { return name == pod.Name })
	c.evicted = append(c.evicted, pod)
	c.mutex.Unlock()
	go func() {
		if err := c.make(); err != nil && c.ctx.Err() == nil {
			c.story.fault("pod %s could not be replaced: %v", pod.Name, err)
		}
	}()
}

func (c *controller) current() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.there)
}

func (c *controller) evictedPods() []*corev1.Pod {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.evicted)
}

// zoneOf is the zone that was chosen for the only container of a pod, or -1.
func zoneOf(pod *corev1.Pod) int {
	var chosen ChosenZone
	if err := json.Unmarshal([]byte(pod.Annotations[zoneAnnotation]), &chosen); err != nil || len(chosen.Zones) != 1 {
		return -1
	}
	return chosen.Zones[0]
}

// remove ends a pod, also one that was never bound.
func (s *Story) remove(ctx context.Context, name string) {
	s.mutex.Lock()
	record := *s.pods[name]
	s.mutex.Unlock()
	node := s.nodes[record.Node]
	if node == nil {
		var none int64
		_ = s.client.CoreV1().Pods(podNamespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &none})
		s.ended(name)
		return
	}
	done := make(chan struct{})
	s.later(0, node, func() {
		defer close(done)
		if !s.hasEnded(name) {
			s.endPod(ctx, &Running{node: node, pod: record.Object, planned: s.plannedOf(name)})
		}
	})
	<-done
}
