package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	preemptionNode = "node-00" // 2 x 10 CPUs
	lowPods        = 18        // of one CPU each
	lowClass       = "story-low"
	highClass      = "story-high"
	// Long enough to see pods evicted in vain again: a scheduler tries a pod again within that time.
	watchTime = 40 * time.Second
)

// Scene is what one part of the case came to.
type Scene struct {
	Name    string  `json:"name"`
	Evicted int     `json:"evicted_pods"`
	Placed  float64 `json:"placed_s,omitempty"` // from the creation of the last pod of high priority
}

// scene is one part of the case preemption: a node full of pods of low priority, which a controller replaces, and pods of
// high priority.
type scene struct {
	name  string
	highs []int64 // CPUs of the pods of high priority
	fits  bool    // whether they can have zones, if others are evicted
	most  int     // evictions
	// Which of the pods of low priority have a PodDisruptionBudget that allows no disruption, by zone.
	guards func(zone int) bool
	// The leading replica is ended when the first pod is evicted.
	killLeader bool
}

func scenes() []scene {
	all := func(int) bool { return true }
	return []scene{
		{name: "fits", highs: []int64{8}, fits: true, most: 8},
		{name: "impossible", highs: []int64{12}},
		{name: "budget of zone 0", highs: []int64{8}, fits: true, most: 8, guards: func(zone int) bool { return zone == 0 }},
		{name: "budget of zone 1", highs: []int64{8}, fits: true, most: 8, guards: func(zone int) bool { return zone == 1 }},
		{name: "budget of all", highs: []int64{8}, fits: true, most: 8, guards: all},
		{name: "leader killed", highs: []int64{8}, fits: true, most: 8, killLeader: true},
		{name: "two at once", highs: []int64{8, 8}, fits: true, most: 17},
	}
}

// playPreemption: for pods of high priority as many others are evicted as it takes, of one zone for each, and nobody where
// it is of no use, though each that is evicted is replaced at once.
func (s *Story) playPreemption(ctx context.Context) (*Result, error) {
	if err := s.waitForTopologies(ctx); err != nil {
		return nil, err
	}
	if err := s.waitForScheduler(ctx); err != nil {
		return nil, err
	}
	for name, value := range map[string]int32{lowClass: -10, highClass: 1000} {
		if _, err := s.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for i, scene := range scenes() {
		if err := s.playScene(ctx, i, scene); err != nil {
			return nil, fmt.Errorf("%s: %w", scene.name, err)
		}
	}
	return s.judge(ctx)
}

func (s *Story) playScene(ctx context.Context, number int, scene scene) error {
	if !s.waitLong(ctx, func() bool { return s.areZonesFree(preemptionNode, 9) }) {
		return fmt.Errorf("%s does not publish that it is free", preemptionNode)
	}
	controller := &controller{story: s, ctx: ctx, prefix: fmt.Sprintf("low-%d", number)}
	s.setOnEvicted(controller.replace)
	if err := controller.fill(); err != nil {
		return err
	}
	if scene.guards != nil {
		if err := s.guard(ctx, controller, scene.guards); err != nil {
			return err
		}
	}
	played := &Scene{Name: scene.name}
	killed := s.killOnEviction(ctx, controller, scene.killLeader)
	highs, err := s.createHighs(ctx, number, scene)
	if err != nil {
		return err
	}
	begin := time.Now()
	if scene.fits {
		if s.waitLong(ctx, func() bool { return s.arePlaced(highs) }) {
			played.Placed = time.Since(begin).Seconds()
		} else {
			s.fault("%s: pods of high priority are not placed", scene.name)
		}
	}
	pause(ctx, watchTime)
	<-killed
	evicted := controller.evictedPods()
	played.Evicted = len(evicted)
	s.result.Scenes = append(s.result.Scenes, *played)
	s.judgeScene(scene, controller, evicted)
	fmt.Fprintf(os.Stderr, "cluster-story: %s: %d evicted, placed after %.1f s\n", scene.name, played.Evicted, played.Placed)
	return s.clear(ctx, scene, controller, highs)
}

func (s *Story) setOnEvicted(call func(pod *corev1.Pod)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.onEvicted = call
}

func (s *Story) createHighs(ctx context.Context, number int, scene scene) ([]string, error) {
	var names []string
	for i, cpus := range scene.highs {
		name := fmt.Sprintf("high-%d-%d", number, i)
		pod := PlannedPod{Name: name, Guaranteed: true, Priority: highClass,
			Parts: []Part{{Name: mainName, Milli: cpus * 1000, Memory: memoryBytes}}}
		s.setPlanned(pod)
		if err := s.create(ctx, pod); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func (s *Story) judgeScene(scene scene, controller *controller, evicted []*corev1.Pod) {
	if scene.fits && len(evicted) > scene.most {
		s.fault("%s: %d pods were evicted, and %d are enough", scene.name, len(evicted), scene.most)
	}
	if !scene.fits && len(evicted) > 0 {
		s.fault("%s: %d pods were evicted in vain", scene.name, len(evicted))
	}
	zones := map[int]int{}
	guarded, most := 0, 0
	for _, pod := range evicted {
		zones[zoneOf(pod)]++
		most = max(most, zones[zoneOf(pod)])
		if pod.Labels[guardLabel] != "" {
			guarded++
		}
	}
	// With seven less the zone has eight CPUs, and the node as a whole, where the agent is too, lacks a little: one may be
	// of any zone.
	if len(scene.highs) == 1 && len(evicted)-most > 1 {
		s.fault("%s: the evicted pods are of several zones: %v", scene.name, zones)
	}
	isForced := scene.guards != nil && scene.guards(0) && scene.guards(1)
	if guarded > 0 && !isForced {
		s.fault("%s: %d pods were evicted against their PodDisruptionBudget, though others would do", scene.name, guarded)
	}
}

// clear: when the pods of high priority have ended, the others have their place again. Then all end.
func (s *Story) clear(ctx context.Context, scene scene, controller *controller, highs []string) error {
	for _, pod := range highs {
		s.remove(ctx, pod)
	}
	if !s.waitLong(ctx, func() bool { return s.arePlaced(controller.current()) }) {
		s.fault("%s: not all pods of low priority are placed again", scene.name)
	}
	s.setOnEvicted(nil)
	for _, pod := range controller.current() {
		s.remove(ctx, pod)
	}
	if scene.guards == nil {
		return nil
	}
	return s.client.PolicyV1().PodDisruptionBudgets(podNamespace).Delete(ctx, guardLabel, metav1.DeleteOptions{})
}

const guardLabel = "guarded"

// guard gives some of the pods a PodDisruptionBudget, with the status that a controller would write.
func (s *Story) guard(ctx context.Context, controller *controller, isGuarded func(zone int) bool) error {
	for _, name := range controller.current() {
		if pod := s.objectOf(name); isGuarded(zoneOf(pod)) {
			if _, err := s.client.CoreV1().Pods(podNamespace).Patch(ctx, name, types.MergePatchType,
				encode(map[string]any{"metadata": map[string]any{"labels": map[string]string{guardLabel: "yes"}}}),
				metav1.PatchOptions{}); err != nil {
				return err
			}
		}
	}
	return makeBudget(ctx, s.client)
}

func makeBudget(ctx context.Context, client kubernetes.Interface) error {
	budgets := client.PolicyV1().PodDisruptionBudgets(podNamespace)
	made, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: guardLabel},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{guardLabel: "yes"}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: made.Generation, DisruptionsAllowed: 0}
	_, err = budgets.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	pause(ctx, 2*time.Second) // until schedulers have heard of it
	return err
}

// killOnEviction returns what is closed when there is nothing more to do.
func (s *Story) killOnEviction(ctx context.Context, controller *controller, isWanted bool) <-chan struct{} {
	done := make(chan struct{})
	if !isWanted || s.extenders == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		if !s.waitLong(ctx, func() bool { return len(controller.evictedPods()) > 0 }) {
			return
		}
		if r := s.extenders.leading(ctx); r != nil {
			s.extenders.end(r, syscall.SIGKILL)
			s.extenders.countOne(&s.extenders.kills)
			s.must(Answer{}, s.extenders.start(r))
		}
	}()
	return done
}

func (s *Story) areZonesFree(node string, cpus int) bool {
	zones := s.lastZones(node)
	return len(zones) > 0 && !slices.ContainsFunc(zones, func(zone Zone) bool { return zone.Available < cpus })
}

func (s *Story) arePlaced(pods []string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !slices.ContainsFunc(pods, func(pod string) bool { return s.pods[pod] == nil || s.pods[pod].PlacedAt.IsZero() })
}

func (s *Story) objectOf(pod string) *corev1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pods[pod].Object
}

// waitLong: pods wait in their scheduler for up to ten seconds, and a replica that leads no more takes as long to replace.
func (s *Story) waitLong(ctx context.Context, condition func() bool) bool {
	for begin := time.Now(); time.Since(begin) < 2*time.Minute && ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}
