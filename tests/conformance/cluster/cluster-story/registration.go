package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	registrationPods = 6
	// An agent asks for a missing Node every few seconds.
	backTime = 15 * time.Second
	stayTime = 5 * time.Second
	// From a write to when the garbage collector has looked for the owner.
	collectEvery = 200 * time.Millisecond
)

// registration is one way in which a Node goes and comes.
type registration struct {
	name string
	play func(ctx context.Context, node *Node) error
}

func (s *Story) registrations() []registration {
	absent := func(delay time.Duration) func(context.Context, *Node) error {
		return func(ctx context.Context, node *Node) error {
			if err := s.deleteNode(ctx, node); err != nil {
				return err
			}
			pause(ctx, delay)
			return s.register(ctx, node)
		}
	}
	return []registration{
		{"registered again at once", absent(0)},
		{"registered again after three seconds", absent(3 * time.Second)},
		{"registered again after twenty seconds", absent(20 * time.Second)},
		{"registered again twice", func(ctx context.Context, node *Node) error {
			if err := absent(0)(ctx, node); err != nil {
				return err
			}
			pause(ctx, 300*time.Millisecond)
			return absent(0)(ctx, node)
		}},
		{"registered again beside an agent that is killed", func(ctx context.Context, node *Node) error {
			if err := s.deleteNode(ctx, node); err != nil {
				return err
			}
			if err := node.killAgent(); err != nil {
				return err
			}
			pause(ctx, time.Second)
			return s.register(ctx, node)
		}},
		{"the object alone is deleted", func(ctx context.Context, node *Node) error {
			return s.dynamic.Resource(topologies).Delete(ctx, node.Name, metav1.DeleteOptions{})
		}},
	}
}

// playRegistration: a Node that is deleted and registered again has its object again within seconds, which stays, counts
// what runs there, and lets pods be placed.
func (s *Story) playRegistration(ctx context.Context) (*Result, error) {
	if err := s.waitForTopologies(ctx); err != nil {
		return nil, err
	}
	if err := s.waitForScheduler(ctx); err != nil {
		return nil, err
	}
	collecting, stop := context.WithCancel(ctx)
	defer stop()
	go s.collect(collecting)
	for i := range registrationPods {
		if err := s.placeRegistrationPod(ctx, i, i == 0); err != nil {
			return nil, err
		}
	}
	number := registrationPods
	for _, one := range s.registrations() {
		for _, name := range []string{"node-00", "node-01"} {
			if err := s.playRegistrationOf(ctx, one, s.nodes[name]); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, one.name, err)
			}
		}
		if err := s.placeRegistrationPod(ctx, number, false); err != nil {
			return nil, err
		}
		number++
	}
	return s.judge(ctx)
}

func (s *Story) placeRegistrationPod(ctx context.Context, number int, hasDevice bool) error {
	part := Part{Name: mainName, Milli: 2000, Memory: memoryBytes}
	if hasDevice {
		part.Milli, part.Devices = 1000, 1
	}
	pod := PlannedPod{Name: fmt.Sprintf("stays-%02d", number), Guaranteed: true, Policy: "single", Parts: []Part{part}}
	s.setPlanned(pod)
	if err := s.create(ctx, pod); err != nil {
		return err
	}
	if !s.waitLong(ctx, func() bool { return s.isDone(pod.Name) && s.isAcknowledged(pod.Name) }) {
		s.fault("pod %s is not placed, or its node does not count it", pod.Name)
	}
	return nil
}

func (s *Story) playRegistrationOf(ctx context.Context, one registration, node *Node) error {
	before, err := s.dynamic.Resource(topologies).Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := one.play(ctx, node); err != nil {
		return err
	}
	begin := time.Now()
	var object *unstructured.Unstructured
	for object == nil && time.Since(begin) < backTime {
		pause(ctx, 100*time.Millisecond)
		object = s.ownedObject(ctx, node, before)
	}
	if object == nil {
		s.fault("%s: %s: there is no object of it", node.Name, one.name)
		return nil
	}
	s.result.Scenes = append(s.result.Scenes, Scene{Name: node.Name + " " + one.name, Placed: time.Since(begin).Seconds()})
	pause(ctx, stayTime)
	if after := s.ownedObject(ctx, node, before); after == nil || after.GetUID() != object.GetUID() {
		s.fault("%s: %s: the object does not stay", node.Name, one.name)
	}
	return nil
}

func (s *Story) deleteNode(ctx context.Context, node *Node) error {
	return s.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
}

// ownedObject is the node's object, if it is another one than before and belongs to the Node that is there now, or null.
func (s *Story) ownedObject(ctx context.Context, node *Node, before *unstructured.Unstructured) *unstructured.Unstructured {
	object, err := s.dynamic.Resource(topologies).Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil || object.GetUID() == before.GetUID() || !s.hasOwner(ctx, object) {
		return nil
	}
	return object
}

func (s *Story) hasOwner(ctx context.Context, object *unstructured.Unstructured) bool {
	for _, owner := range object.GetOwnerReferences() {
		node, err := s.client.CoreV1().Nodes().Get(ctx, owner.Name, metav1.GetOptions{})
		if err == nil && node.UID == owner.UID || err != nil && !apierrors.IsNotFound(err) {
			return true
		}
	}
	return len(object.GetOwnerReferences()) == 0
}

// collect does what the garbage collector does, which is a part of another program.
func (s *Story) collect(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, collectEvery) {
		list, err := s.dynamic.Resource(topologies).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for i := range list.Items {
			if object := &list.Items[i]; !s.hasOwner(ctx, object) {
				uid := object.GetUID()
				_ = s.dynamic.Resource(topologies).Delete(ctx, object.GetName(),
					metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			}
		}
	}
}
