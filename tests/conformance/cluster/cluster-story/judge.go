package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Result is what one run came to. Times are in seconds, from the pod's creation.
type Result struct {
	Pods            int `json:"pods"`
	Bound           int `json:"bound"`
	Placed          int `json:"placed"`
	PlacedByKubelet int `json:"placed_by_kubelet"`
	Waiting         int `json:"waiting"`     // not bound in the end
	DeniedPods      int `json:"denied_pods"` // by their node, at least once
	// Shortages that denied pods met first: cpus, zone (the CPUs are there, but not in one) or memory.
	DeniedFor map[string]int `json:"denied_for"`
	// Promises of topolet-extender that nodes could not keep, by cause.
	OutsideByDevice   int `json:"outside_by_device"`
	OutsideByResize   int `json:"outside_by_resize"`
	DeniedByDevice    int `json:"denied_by_device"`
	DeniedByResize    int `json:"denied_by_resize"`
	DeniedUnexplained int `json:"denied_unexplained"`
	// Zones of the objects compared that say more than their node grants, by cause.
	OverByDevice    int      `json:"over_promised_by_device"`
	OverByResize    int      `json:"over_promised_by_resize"`
	OverByInitial   int      `json:"over_promised_by_init"`
	OverUnexplained int      `json:"over_promised_unexplained"`
	Under           int      `json:"under_promised_objects"` // which say nothing more, and less elsewhere
	WaitingThatFit  int      `json:"waiting_that_fit"`
	ResizesDeferred int      `json:"resizes_deferred"` // the node has not so much
	ResizesDenied   int      `json:"resizes_denied"`   // its zone has not
	Denials         int      `json:"denials"`          // the kubelets' repetitions included
	Stuck           int      `json:"stuck"`            // bound and not placed in the end
	Ended           int      `json:"ended"`
	Resized         int      `json:"resized"`
	AgentsKilled    int      `json:"agents_killed"`
	Moved           int      `json:"moved"`     // how often a container with CPUs of its own was given others while it ran
	Published       int      `json:"published"` // versions of objects that were seen
	Compared        int      `json:"compared"`
	RightZone       int      `json:"right_zone"`          // containers whose CPUs are in the zone that was chosen for them
	WrongZone       int      `json:"outside_unexplained"` // and those whose are not, for no cause that the documents name
	Rejected        int      `json:"rejected"`            // pods that their scheduler found no node for at first
	OnPlain         int      `json:"on_plain"`            // pods bound to nodes without topoletd
	FirstTry        int      `json:"first_try"`           // of the case field
	Evicted         int      `json:"evicted"`             // by schedulers
	Scenes          []Scene  `json:"scenes,omitempty"`    // of the cases preemption and registration
	ExtendersKilled int      `json:"extenders_killed"`
	ExtendersFrozen int      `json:"extenders_frozen"`
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
	s.countMoves()
	s.compareObjects(ctx)
	s.checkDevices()
	if s.options.MustFit {
		s.lookForRoom()
	}
	return s.finish()
}

// finish keeps what the nodes did, where something is wrong.
func (s *Story) finish() (*Result, error) {
	if len(s.result.Faults) == 0 {
		s.result.Faults = []string{}
		return &s.result, nil
	}
	for _, node := range s.nodes {
		if err := node.saveHistory(); err != nil {
			return nil, err
		}
	}
	return &s.result, nil
}

func (s *Story) countExtenders() {
	if s.extenders == nil {
		return
	}
	s.extenders.stop()
	s.result.ExtendersKilled, s.result.ExtendersFrozen = s.extenders.kills, s.extenders.freezes
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

func (s *Story) countMoves() {
	for _, node := range s.nodes {
		for _, line := range node.history() {
			s.result.Moved += line.Answer.movedExclusive()
		}
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

// lookForRoom: a pod that waits must fit nowhere. One with devices is left out: of these the node takes any, and who
// schedules it one of the zone of its CPUs.
func (s *Story) lookForRoom() {
	bound := map[string]Offer{}
	var waiting []Pending
	s.mutex.Lock()
	for name, record := range s.pods {
		planned := s.planned[name]
		switch {
		case record.Node == "" && planned.devices() == 0:
			waiting = append(waiting, Pending{Pod: record.Object, Planned: planned, Parts: planned.Parts})
		case record.Node != "" && !record.HasEnded:
			asked := planned.requests()
			sum := bound[record.Node]
			bound[record.Node] = Offer{sum.MilliCPUs + asked.MilliCPUs, sum.Memory + asked.Memory}
		}
	}
	s.mutex.Unlock()
	for name, node := range s.nodes {
		if node.IsPlain {
			continue
		}
		left := Offer{node.Offer.MilliCPUs - agentMilli - bound[name].MilliCPUs,
			node.Offer.Memory - agentMemory - bound[name].Memory}
		if err := s.lookForRoomOn(node, left, waiting); err != nil {
			s.fault("%v", err)
		}
	}
}

func (s *Story) lookForRoomOn(node *Node, left Offer, waiting []Pending) error {
	replay, err := openReplay(s.options, node, node.history())
	if err != nil {
		return err
	}
	defer func() { replay.close() }()
	for _, pod := range waiting {
		if asked := pod.Planned.requests(); asked.MilliCPUs > left.MilliCPUs || asked.Memory > left.Memory {
			continue
		}
		before := replay.holdings.available(node.Machine, s.lastZones(node.Name))
		fits, err := replay.create(pod, func() {})
		if err != nil {
			return err
		}
		// For which zone a move would make room, nobody publishes.
		if replay.hasMoved {
			again, err := openReplay(s.options, node, node.history())
			if err != nil {
				return err
			}
			replay.close()
			replay = again
			continue
		}
		if fits {
			s.result.WaitingThatFit++
			s.fault("pod %s (%s) waits, and %s, which has %v CPUs left by zone, has room for it", pod.Pod.Name,
				encode(pod.Planned.Parts), node.Name, before)
		}
		if _, err := replay.apply(map[string]any{"op": "remove_pod", "pod": string(pod.Pod.UID)}); err != nil {
			return err
		}
	}
	return nil
}

// checkDevices: in the end each zone publishes the devices that nobody has.
func (s *Story) checkDevices() {
	for name, node := range s.nodes {
		if len(node.Machine.Devices) == 0 {
			continue
		}
		var said []int
		for _, zone := range s.lastZones(name) {
			said = append(said, zone.Devices)
		}
		if free := node.devices.freeIn(node.Machine.Zones); !slices.Equal(said, free) {
			s.fault("%s publishes %v devices by zone, and has %v", name, said, free)
		}
	}
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
