package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Result is what one run came to. Times are in seconds, from the pod's creation.
type Result struct {
	Pods            int      `json:"pods"`
	Bound           int      `json:"bound"`
	Placed          int      `json:"placed"`
	PlacedByKubelet int      `json:"placed_by_kubelet"`
	Waiting         int      `json:"waiting"`     // not bound in the end
	DeniedPods      int      `json:"denied_pods"` // by their node, at least once
	Denials         int      `json:"denials"`     // the kubelets' repetitions included
	Stuck           int      `json:"stuck"`       // bound and not placed in the end
	Ended           int      `json:"ended"`
	Resized         int      `json:"resized"`
	AgentsKilled    int      `json:"agents_killed"`
	Published       int      `json:"published"` // versions of objects that were seen
	Compared        int      `json:"compared"`
	RightZone       int      `json:"right_zone"` // pods whose CPUs are in the zone that was chosen for them
	WrongZone       int      `json:"wrong_zone"` // and those whose are not
	Rejected        int      `json:"rejected"`   // pods that their scheduler found no node for at first
	OnPlain         int      `json:"on_plain"`   // pods bound to nodes without topoletd
	FirstTry        int      `json:"first_try"`  // of the case field
	ExtendersKilled int      `json:"extenders_killed"`
	ExtenderCPU     float64  `json:"extender_cpu_s"`    // of all replicas
	ExtenderPeak    int      `json:"extender_peak_kib"` // of one
	PlacedMedian    float64  `json:"placed_s_p50"`
	Placed95        float64  `json:"placed_s_p95"`
	SchedulerCPU    float64  `json:"scheduler_cpu_s"`
	Reason          string   `json:"last_denial,omitempty"`
	Faults          []string `json:"faults"`
}

func (s *Story) judge(ctx context.Context) (*Result, error) {
	s.result.SchedulerCPU = cpuSecondsOf(s.schedulerPID)
	s.countExtenders()
	s.countPods()
	s.compareObjects(ctx)
	if s.options.MustFit {
		s.lookForRoom()
	}
	if s.result.Faults == nil {
		s.result.Faults = []string{}
	}
	return &s.result, nil
}

func (s *Story) countExtenders() {
	if s.extenders == nil {
		return
	}
	s.extenders.stop()
	s.result.ExtendersKilled = s.extenders.kills
	s.result.ExtenderCPU = s.extenders.cpu
	s.result.ExtenderPeak = s.extenders.peak
}

func (s *Story) countPods() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var times []float64
	for _, record := range s.pods {
		s.result.Pods++
		if record.Node == "" {
			s.result.Waiting++
		} else {
			s.result.Bound++
			if record.PlacedAt.IsZero() {
				s.result.Stuck++
			}
		}
		if record.Denials > 0 {
			s.result.DeniedPods++
		}
		if record.IsRejected {
			s.result.Rejected++
		}
		if node := s.nodes[record.Node]; node != nil && node.IsPlain {
			s.result.OnPlain++
		}
		if !record.PlacedAt.IsZero() {
			s.result.Placed++
			times = append(times, record.PlacedAt.Sub(record.CreatedAt).Seconds())
		}
	}
	sort.Float64s(times)
	if len(times) > 0 {
		s.result.PlacedMedian = times[len(times)/2]
		s.result.Placed95 = times[len(times)*95/100]
	}
}

// compareObjects holds a sample of all that was published, and the last object of each node, to the oracle.
func (s *Story) compareObjects(ctx context.Context) {
	s.mutex.Lock()
	all := append([]Published(nil), s.published...)
	s.mutex.Unlock()
	last := map[string]int{}
	for i, published := range all {
		last[published.Node] = i
	}
	chosen := map[int]bool{}
	for _, i := range last {
		chosen[i] = true
	}
	random := rand.New(rand.NewSource(s.options.Seed + 2))
	for len(chosen) < min(len(all), s.options.Samples) {
		chosen[random.Intn(len(all))] = true
	}
	for i := range chosen {
		if ctx.Err() != nil {
			return
		}
		if err := s.check(all[i]); err != nil {
			s.fault("%v", err)
		}
		s.result.Compared++
	}
}

// lookForRoom: a pod that waits must fit nowhere, and one that is bound must run.
func (s *Story) lookForRoom() {
	bound := map[string]int64{}
	var waiting []*corev1.Pod
	s.mutex.Lock()
	for _, record := range s.pods {
		switch {
		case record.Node == "":
			waiting = append(waiting, record.Object)
		case !record.HasEnded:
			bound[record.Node] += record.Object.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	s.mutex.Unlock()
	for name, node := range s.nodes {
		if node.IsPlain {
			continue
		}
		zones := s.lastZones(name)
		found, err := s.replay(node, node.history(), nil, zones)
		if err != nil {
			s.fault("%v", err)
			continue
		}
		for _, pod := range waiting {
			milli := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			if int64(node.Machine.Allocatable)*1000-bound[name] < milli {
				continue
			}
			for i, available := range found {
				if !isExclusive(pod) || int64(available)*1000 >= milli {
					s.fault("pod %s (%d m) waits, and %s has room for it: %d CPUs in %s", pod.Name, milli, name, available, zones[i].Name)
					break
				}
			}
		}
	}
}

func (s *Story) lastPublished(node string) *Published {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := len(s.published) - 1; i >= 0; i-- {
		if s.published[i].Node == node {
			last := s.published[i]
			return &last
		}
	}
	return nil
}

func (s *Story) lastZones(node string) []Zone {
	last := s.lastPublished(node)
	if last == nil {
		return nil
	}
	return last.Zones
}

// cpuSecondsOf is the CPU time of a process, user and system; see proc(5).
func cpuSecondsOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text)[strings.LastIndex(string(text), ")")+1:])
	const ticks = 100 // USER_HZ
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / ticks
}
