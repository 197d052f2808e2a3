package main

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	zoneAnnotation   = "topolet.io/zone"
	policyAnnotation = "topolet.io/zone-policy"
)

// ChosenZone is what topolet-extender says in the annotation of a pod.
type ChosenZone struct {
	Node       string           `json:"node"`
	Zones      []int            `json:"zones"`
	Containers map[string][]int `json:"containers"`
}

// checkZone holds the CPUs that a container has alone to the zone that was chosen for it.
func (s *Story) checkZone(node *Node, pod *corev1.Pod, answer Answer) {
	if !s.hasExtender() || answer.Mode != "exclusive" {
		return
	}
	text, isThere := pod.Annotations[zoneAnnotation]
	if !isThere {
		s.wrongZone("pod %s was bound to %s without a zone", pod.Name, node.Name)
		return
	}
	var chosen ChosenZone
	if err := json.Unmarshal([]byte(text), &chosen); err != nil {
		s.wrongZone("the annotation %s of pod %s cannot be read: %v", zoneAnnotation, pod.Name, err)
		return
	}
	if chosen.Node != node.Name {
		s.wrongZone("pod %s is on %s, and its annotation says %s", pod.Name, node.Name, text)
		return
	}
	zones := chosen.Containers[containerName]
	if zones == nil {
		zones = chosen.Zones
	}
	allowed := s.cpusOf(node.Name, zones)
	for _, cpu := range cpusIn(answer.CPUs) {
		if !slices.Contains(allowed, cpu) {
			s.wrongZone("pod %s has the CPUs %s of %s, which are not in the zones %v of its annotation: %s", pod.Name,
				answer.CPUs, node.Name, zones, answer.Reason)
			return
		}
	}
	s.count(&s.result.RightZone)
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
