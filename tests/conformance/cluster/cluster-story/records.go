package main

import (
	"fmt"
	"os"
	"time"
)

// Records of pods' histories, from any goroutine.

func (s *Story) fault(format string, arguments ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	text := fmt.Sprintf(format, arguments...)
	fmt.Fprintln(os.Stderr, "cluster-story:", text)
	if len(s.result.Faults) < 20 {
		s.result.Faults = append(s.result.Faults, text)
	}
}

// count counts something that may change what fits.
func (s *Story) count(number *int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	*number++
	s.lastEvent = time.Now()
}

func (s *Story) ended(pod string) {
	s.mutex.Lock()
	s.pods[pod].HasEnded = true
	s.mutex.Unlock()
	s.count(&s.result.Ended)
}

func (s *Story) hasEnded(pod string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pods[pod].HasEnded
}

// deniedOnce: what is told again and again is counted once.
func (s *Story) deniedOnce(pod, reason string) {
	s.mutex.Lock()
	isNew := s.pods[pod].Denials == 0
	s.mutex.Unlock()
	if isNew && s.noteDenial(pod, reason) && s.hasExtender() {
		s.count(&s.result.DeniedUnexplained)
		s.fault("pod %s was denied by the real node: %s", pod, reason)
	}
}

// placed: whether it was not yet.
func (s *Story) placed(pod string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.pods[pod].PlacedAt.IsZero() {
		return false
	}
	s.pods[pod].PlacedAt = time.Now()
	s.lastEvent = time.Now()
	return true
}

func (s *Story) plannedOf(pod string) PlannedPod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.planned[pod]
}

// setPlanned: of a pod that is resized, what it began with stays known.
func (s *Story) setPlanned(pod PlannedPod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.planned[pod.Name] = pod
	if _, isKnown := s.begun[pod.Name]; !isKnown {
		s.begun[pod.Name] = pod
	}
}
