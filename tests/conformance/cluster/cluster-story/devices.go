package main

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// An agent asks the kubelet for devices and writes what follows from them within that time, also one that was killed.
const deviceLag = 6 * time.Second

// Device is one that a device plugin tells the kubelet of.
type Device struct {
	ID   string
	Path string
	Zone int
}

// DeviceManager is the kubelet's part that gives devices to pods, and tells who has them. It heeds no zones, as the
// kubelet does without a topology manager.
type DeviceManager struct {
	podresources.UnimplementedPodResourcesListerServer
	server *grpc.Server

	mutex  sync.Mutex // of what follows
	all    []Device
	given  map[string][]Device // by pod
	ever   map[string][]Device // those of pods that have ended too
	since  map[string]time.Time
	random *rand.Rand
}

func newDeviceManager(zones []int, seed int64) *DeviceManager {
	m := &DeviceManager{given: map[string][]Device{}, ever: map[string][]Device{}, since: map[string]time.Time{},
		random: rand.New(rand.NewSource(seed))}
	for i, zone := range zones {
		m.all = append(m.all, Device{ID: fmt.Sprintf("gpu-%d", i), Path: fmt.Sprintf("/dev/story-gpu%d", i), Zone: zone})
	}
	return m
}

// serve answers on the kubelet's socket for those who ask which devices there are.
func (m *DeviceManager) serve(socket string) error {
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	m.server = grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(m.server, m)
	go func() { _ = m.server.Serve(listener) }()
	return nil
}

func (m *DeviceManager) stop() {
	if m.server != nil {
		m.server.Stop()
	}
}

// give takes so many free devices for the pod, or none if there are not enough.
func (m *DeviceManager) give(pod string, number int) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	free := m.freeDevices()
	if len(free) < number {
		return false
	}
	m.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	if number > 0 {
		m.given[pod], m.ever[pod], m.since[pod] = free[:number], free[:number], time.Now()
	}
	return true
}

func (m *DeviceManager) freeDevices() []Device {
	taken := map[string]bool{}
	for _, devices := range m.given {
		for _, device := range devices {
			taken[device.ID] = true
		}
	}
	var free []Device
	for _, device := range m.all {
		if !taken[device.ID] {
			free = append(free, device)
		}
	}
	return free
}

func (m *DeviceManager) takeBack(pod string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.given, pod)
}

func (m *DeviceManager) of(pod string) []Device {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]Device(nil), m.given[pod]...)
}

func (m *DeviceManager) everGiven(pod string) []Device {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.ever[pod]
}

// isNew: so short a while ago the pod had no devices yet, that an object of that time may not know of them.
func (m *DeviceManager) isNew(pod string, at time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return at.Sub(m.since[pod]) < deviceLag
}

// freeIn is how many devices of each zone nobody has.
func (m *DeviceManager) freeIn(zones int) []int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	free := make([]int, zones)
	for _, device := range m.freeDevices() {
		free[device.Zone]++
	}
	return free
}

func told(device Device) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{
		ResourceName: deviceResource, DeviceIds: []string{device.ID},
		Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: int64(device.Zone)}}}}
}

// GetAllocatableResources tells of all devices.
func (m *DeviceManager) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (
	*podresources.AllocatableResourcesResponse, error) {
	answer := &podresources.AllocatableResourcesResponse{}
	for _, device := range m.all {
		answer.Devices = append(answer.Devices, told(device))
	}
	return answer, nil
}

// List tells of those that pods have.
func (m *DeviceManager) List(context.Context, *podresources.ListPodResourcesRequest) (
	*podresources.ListPodResourcesResponse, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	answer := &podresources.ListPodResourcesResponse{}
	for pod, devices := range m.given {
		container := &podresources.ContainerResources{Name: mainName}
		for _, device := range devices {
			container.Devices = append(container.Devices, told(device))
		}
		answer.PodResources = append(answer.PodResources, &podresources.PodResources{
			Name: pod, Namespace: podNamespace, Containers: []*podresources.ContainerResources{container}})
	}
	return answer, nil
}
