package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var topologies = schema.GroupVersionResource{
	Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}

// PodRecord is what became of one pod.
type PodRecord struct {
	Object     *corev1.Pod // as it was first seen bound, else as it was created
	CreatedAt  time.Time
	Node       string
	PlacedAt   time.Time
	Denials    int
	HasEnded   bool
	IsStopped  bool // somebody has deleted it
	IsRejected bool // its scheduler found no node at first
}

// Story is one run.
type Story struct {
	options      Options
	config       *rest.Config
	client       kubernetes.Interface
	dynamic      dynamic.Interface
	nodes        map[string]*Node
	workers      sync.WaitGroup // one for each node
	stop         context.CancelFunc
	schedulerPID int
	extenders    *Extenders // or null

	mutex     sync.Mutex // of what follows
	planned   map[string]PlannedPod
	begun     map[string]PlannedPod // as they were created
	pods      map[string]*PodRecord
	published []Published
	seenNodes map[string]bool // whose object was seen
	lastEvent time.Time
	result    Result
	onEvicted func(pod *corev1.Pod) // or null; must not wait, as it is called under the mutex
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

func newStory(ctx context.Context, config *rest.Config, options Options) (*Story, error) {
	s := &Story{
		options: options, config: config, nodes: map[string]*Node{}, planned: map[string]PlannedPod{}, begun: map[string]PlannedPod{}, pods: map[string]*PodRecord{},
		seenNodes: map[string]bool{}, result: Result{DeniedFor: map[string]int{}},
	}
	var err error
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	if err := s.makeNodes(); err != nil { // before anybody else looks at them
		return nil, err
	}
	if err := s.follow(ctx); err != nil {
		return nil, err
	}
	if s.hasExtender() {
		if s.extenders, err = startExtenders(ctx, s.client, options); err != nil {
			return nil, err
		}
	}
	for _, node := range s.nodes {
		if err := s.addNode(ctx, node); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Story) makeNodes() error {
	if err := s.options.writeConfiguration(); err != nil {
		return err
	}
	for i, machine := range s.options.machines() {
		node, err := startNode(s.options, i, machine)
		if err != nil {
			return err
		}
		s.nodes[node.Name] = node
	}
	for i := 0; i < s.options.PlainNodes; i++ {
		node, err := plainNode(s.options, i)
		if err != nil {
			return err
		}
		s.nodes[node.Name] = node
	}
	return nil
}

func (s *Story) addNode(ctx context.Context, node *Node) error {
	if err := s.register(ctx, node); err != nil {
		return err
	}
	if !node.IsPlain {
		if err := s.registerAgent(ctx, node); err != nil {
			return err
		}
		if err := node.startAgent(); err != nil {
			return err
		}
	}
	s.workers.Add(1)
	go s.serveNode(ctx, node)
	return nil
}

// register makes the node's Node, with what its kubelet offers.
func (s *Story) register(ctx context.Context, node *Node) error {
	nodes := s.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: poolLabels}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	// Without a controller of nodes nobody else takes away that it is not ready yet.
	taints := map[string]any{"spec": map[string]any{"taints": []corev1.Taint{poolTaint}}}
	if _, err := nodes.Patch(ctx, node.Name, types.MergePatchType, encode(taints), metav1.PatchOptions{}); err != nil {
		return err
	}
	amounts := resourcesOf(node.Offer.MilliCPUs, node.Offer.Memory)
	amounts[corev1.ResourcePods] = resource.MustParse("110")
	if devices := int64(len(node.Machine.Devices)); devices > 0 {
		amounts[deviceResource] = *resource.NewQuantity(devices, resource.DecimalSI)
	}
	status := map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
	_, err := nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, encode(status), metav1.PatchOptions{}, "status")
	return err
}

// follow watches pods, as the kubelets do, and what the agents publish.
func (s *Story) follow(ctx context.Context) error {
	pods := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "pods", podNamespace, fields.Everything())
	handle := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			s.onPod(ctx, pod)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: pods, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }},
	})
	go controller.Run(ctx.Done())
	informer := dynamicinformer.NewDynamicSharedInformerFactory(s.dynamic, 0).ForResource(topologies).Informer()
	read := func(object any) {
		if topology, ok := object.(*unstructured.Unstructured); ok {
			s.onTopology(topology)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: read, UpdateFunc: func(_, object any) { read(object) }}); err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	return nil
}

func (s *Story) onPod(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		s.noteRejection(pod)
	}
	if pod.DeletionTimestamp != nil && s.nodes[pod.Spec.NodeName] != nil {
		s.onDeletion(ctx, pod)
		return
	}
	if pod.Spec.NodeName == "" {
		return
	}
	s.mutex.Lock()
	record := s.pods[pod.Name]
	if record == nil { // its creation has not returned yet
		record = &PodRecord{Object: pod, CreatedAt: pod.CreationTimestamp.Time}
		s.pods[pod.Name] = record
	}
	isNew := record.Node == ""
	record.Node = pod.Spec.NodeName
	record.Object = pod
	s.mutex.Unlock()
	node := s.nodes[pod.Spec.NodeName]
	if node == nil {
		s.followRealPod(ctx, pod)
		return
	}
	if isNew {
		s.later(0, node, func() {
			if !s.hasEnded(pod.Name) {
				s.admit(ctx, node, pod)
			}
		})
	}
}

func (s *Story) noteRejection(pod *corev1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, condition := range pod.Status.Conditions {
		if record := s.pods[pod.Name]; record != nil && condition.Type == corev1.PodScheduled &&
			condition.Status == corev1.ConditionFalse {
			record.IsRejected = true
		}
	}
}

func (s *Story) play(ctx context.Context) error {
	if err := s.waitForTopologies(ctx); err != nil {
		return err
	}
	if err := s.waitForScheduler(ctx); err != nil {
		return err
	}
	killing, stopKilling := context.WithCancel(ctx)
	defer stopKilling()
	killed := make(chan struct{})
	go s.killAgents(killing, killed)
	s.killExtenders(killing)
	planned := plan(s.options)
	for _, pod := range planned {
		s.setPlanned(pod)
	}
	for i, pod := range planned {
		if i > 0 && i%s.options.Burst == 0 {
			pause(ctx, s.options.Between)
		}
		if err := s.create(ctx, pod); err != nil {
			return err
		}
	}
	for s.sinceLastEvent() < s.options.Settle {
		if s.sinceLastEvent() > s.options.Settle/4 {
			stopKilling()
		}
		pause(ctx, time.Second)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	<-killed
	return nil
}

func (s *Story) create(ctx context.Context, pod PlannedPod) error {
	created, err := s.client.CoreV1().Pods(podNamespace).Create(ctx, pod.object(s.options), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.pods[pod.Name] == nil {
		s.pods[pod.Name] = &PodRecord{Object: created, CreatedAt: time.Now()}
	}
	s.lastEvent = time.Now()
	return nil
}

func (s *Story) killExtenders(ctx context.Context) {
	if s.extenders == nil {
		return
	}
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		if err := s.extenders.killLeaders(ctx); err != nil {
			s.fault("topolet-extender did not start again: %v", err)
		}
	}()
}

func pause(ctx context.Context, delay time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}

func (s *Story) sinceLastEvent() time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return time.Since(s.lastEvent)
}

func (s *Story) waitForTopologies(ctx context.Context) error {
	wanted := len(s.nodes) - s.options.PlainNodes
	if s.options.RealNode != "" {
		wanted++
	}
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; pause(ctx, 100*time.Millisecond) {
		s.mutex.Lock()
		seen := len(s.seenNodes)
		s.mutex.Unlock()
		if seen == wanted {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("not all of %d nodes published what they have; see the agents' logs in %s", wanted, s.options.Directory)
}

func (s *Story) waitForScheduler(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; pause(ctx, 100*time.Millisecond) {
		text, err := os.ReadFile(s.options.SchedulerFile)
		if err != nil {
			continue
		}
		s.schedulerPID, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	}
	return fmt.Errorf("no scheduler was started: %s did not appear", s.options.SchedulerFile)
}

func (s *Story) killAgents(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	random := rand.New(rand.NewSource(s.options.Seed + 1))
	for {
		pause(ctx, time.Duration(1000+random.Intn(3000))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		node := s.nodes[fmt.Sprintf("node-%02d", random.Intn(len(s.nodes)-s.options.PlainNodes))]
		if err := node.killAgent(); err != nil {
			s.fault("the agent of %s did not start again: %v", node.Name, err)
		}
		s.mutex.Lock()
		s.result.AgentsKilled++
		s.mutex.Unlock()
	}
}

func (s *Story) end() {
	s.stop()
	s.workers.Wait()
	if s.extenders != nil {
		s.extenders.stop()
	}
	var all sync.WaitGroup
	for _, node := range s.nodes {
		all.Add(1)
		go func() { defer all.Done(); node.end() }()
	}
	all.Wait()
}
