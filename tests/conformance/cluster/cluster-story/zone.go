package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	zoneAnnotation   = "topolet.io/zone"
	policyAnnotation = "topolet.io/zone-policy"
)

// Why a node may not keep what the extender has promised, as cluster/README.md names it.
const (
	byDevice = "device" // the kubelet gave the pod a device of another zone, and the pod went there
	byResize = "resize" // a container that runs has grown meanwhile
)

// ChosenZone is what topolet-extender says in the annotation of a pod.
type ChosenZone struct {
	Node       string           `json:"node"`
	Zones      []int            `json:"zones"`
	Containers map[string][]int `json:"containers"`
	Generation uint64           `json:"gen"` // of the object that it was chosen by
}

// Disturbance is something that took CPUs of a zone without being asked for by a scheduler.
type Disturbance struct {
	Generation uint64
	Cause      string
}

func (n *Node) disturb(cause string, generation uint64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.disturbances = append(n.disturbances, Disturbance{generation, cause})
}

// disturbedSince is why a zone may have less than the object of that generation said, or empty.
func (n *Node) disturbedSince(generation uint64) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, disturbance := range n.disturbances {
		if disturbance.Generation > generation {
			return disturbance.Cause
		}
	}
	return ""
}

// cause is why the zone chosen for the pod is not the one that it gets, or empty.
func (r *Running) cause(chosen ChosenZone) string {
	for _, device := range r.node.devices.of(r.pod.Name) {
		if !slices.Contains(chosen.Zones, device.Zone) {
			return byDevice
		}
	}
	return r.node.disturbedSince(chosen.Generation)
}

func chosenFor(running *Running) (ChosenZone, error) {
	var chosen ChosenZone
	text, isThere := running.pod.Annotations[zoneAnnotation]
	if !isThere {
		return chosen, fmt.Errorf("pod %s was bound to %s without a zone", running.pod.Name, running.node.Name)
	}
	if err := json.Unmarshal([]byte(text), &chosen); err != nil {
		return chosen, fmt.Errorf("the annotation %s of pod %s cannot be read: %w", zoneAnnotation, running.pod.Name, err)
	}
	if chosen.Node != running.node.Name {
		return chosen, fmt.Errorf("pod %s is on %s, and its annotation says %s", running.pod.Name, running.node.Name, text)
	}
	return chosen, nil
}

// checkZone holds the CPUs that a container has alone to the zone that was chosen for it.
func (s *Story) checkZone(running *Running, part Part, answer Answer) {
	if !s.hasExtender() || answer.Mode != "exclusive" {
		return
	}
	chosen, err := chosenFor(running)
	if err != nil {
		s.wrongZone("%v", err)
		return
	}
	zones := chosen.Containers[part.Name]
	if zones == nil {
		zones = chosen.Zones
	}
	allowed := s.cpusOf(running.node.Name, zones)
	isInside := !slices.ContainsFunc(cpusIn(answer.CPUs), func(cpu int) bool { return !slices.Contains(allowed, cpu) })
	if isInside {
		s.count(&s.result.RightZone)
		return
	}
	cause := running.cause(chosen)
	running.node.disturb(cause, answer.Generation)
	switch cause {
	case byDevice:
		s.count(&s.result.OutsideByDevice)
	case byResize:
		s.count(&s.result.OutsideByResize)
	default:
		s.wrongZone("pod %s has the CPUs %s of %s for %s, which are not in the zones %v of its annotation: %s",
			running.pod.Name, answer.CPUs, running.node.Name, part.Name, zones, answer.Reason)
	}
}

// denied: with the extender that breaks a promise, and there must be a cause.
func (s *Story) denied(running *Running, part Part, reason string) {
	isFirst := s.noteDenial(running.pod.Name, reason)
	if !isFirst || !s.hasExtender() || running.node.IsPlain || s.options.Case == "field" {
		return
	}
	chosen, err := chosenFor(running)
	cause := ""
	if err == nil {
		cause = running.cause(chosen)
	}
	switch cause {
	case byDevice:
		s.count(&s.result.DeniedByDevice)
	case byResize:
		s.count(&s.result.DeniedByResize)
	default:
		s.count(&s.result.DeniedUnexplained)
		s.fault("pod %s, bound with the zones %v at generation %d, was denied by %s for %s at generation %d: %s",
			running.pod.Name, chosen.Zones, chosen.Generation, running.node.Name, part.Name, running.node.generation(), reason)
	}
}

// noteDenial: whether it is the pod's first.
func (s *Story) noteDenial(pod, reason string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	record := s.pods[pod]
	record.Denials++
	s.result.Denials++
	s.result.Reason = reason
	if record.Denials > 1 {
		return false
	}
	s.result.DeniedFor[reasonClass(reason)]++
	return true
}

// reasonClass is what a pod lacked, in a word.
func reasonClass(reason string) string {
	switch {
	case strings.Contains(reason, "memory free, but"):
		return "memory"
	case strings.Contains(reason, "single-numa-node"):
		return "zone"
	default:
		return "cpus"
	}
}

// cpusOf are the CPUs of zones, as the node last published them.
func (s *Story) cpusOf(node string, zones []int) []int {
	var cpus []int
	for _, zone := range s.lastZones(node) {
		for _, number := range zones {
			if zone.Name == fmt.Sprintf("node-%d", number) {
				cpus = append(cpus, zone.CPUs...)
			}
		}
	}
	return cpus
}

func (s *Story) wrongZone(format string, arguments ...any) {
	s.count(&s.result.WrongZone)
	s.fault(format, arguments...)
}

func (s *Story) hasExtender() bool { return s.options.Extender != "" }
