package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

const topologyPath = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"

// APIServer answers what topolet-extender asks of a real one: topologies, pods, Bindings and a Lease, in memory. It keeps
// lists as they are sent and speaks HTTP/2, so that the extender is measured, and not the server: the one of the unit
// tests (tests/cluster_api) takes several times as long for a list of 5,000 nodes as the extender for its start.
type APIServer struct {
	server *httptest.Server

	mutex      sync.Mutex // of what follows
	version    int
	topologies []*Topology
	byNode     map[string]*Topology
	listed     map[string]json.RawMessage // the topologies as they were last written
	pods       map[string]*boundPod       // by namespace and name
	lease      map[string]any
	watchers   map[chan []byte]bool
}

type boundPod struct {
	Object map[string]any
	UID    string
	CPUs   int
	Node   string
}

func startAPIServer(all []*Topology) *APIServer {
	a := &APIServer{topologies: all, byNode: map[string]*Topology{}, listed: map[string]json.RawMessage{},
		pods: map[string]*boundPod{}, watchers: map[chan []byte]bool{}, version: 1}
	for _, t := range all {
		a.byNode[t.Node] = t
		a.listed[t.Node] = encode(t.object("1"))
	}
	a.server = httptest.NewUnstartedServer(a)
	a.server.EnableHTTP2 = true
	a.server.StartTLS()
	return a
}

func (a *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == topologyPath && isWatch(r):
		a.watch(w, r)
	case path == topologyPath:
		a.listTopologies(w, r)
	case path == "/api/v1/pods":
		a.listPods(w)
	case strings.HasPrefix(path, "/apis/coordination.k8s.io/v1/"):
		a.serveLease(w, r)
	case strings.HasPrefix(path, "/api/v1/namespaces/") && len(parts) == 7 && parts[6] == "binding" && r.Method == http.MethodPost:
		a.bind(w, r, parts[3]+"/"+parts[5])
	case strings.HasPrefix(path, "/api/v1/namespaces/") && len(parts) == 6 && r.Method == http.MethodGet:
		a.getPod(w, parts[3]+"/"+parts[5])
	default:
		status(w, http.StatusNotFound, "NotFound", r.Method+" "+path)
	}
}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "1" || watch == "true"
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	_, _ = w.Write(encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
		"message": message, "code": code}))
}

func (a *APIServer) listTopologies(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	last := len(a.topologies)
	metadata := map[string]any{"resourceVersion": fmt.Sprint(a.version)}
	if limit > 0 && first+limit < last {
		last = first + limit
		metadata["continue"] = fmt.Sprint(last)
		metadata["remainingItemCount"] = len(a.topologies) - last
	}
	items := make([]json.RawMessage, 0, last-first)
	for _, t := range a.topologies[first:last] {
		items = append(items, a.listed[t.Node])
	}
	_, _ = w.Write(encode(map[string]any{"kind": "NodeResourceTopologyList", "apiVersion": "topology.node.k8s.io/v1alpha2",
		"metadata": metadata, "items": items}))
}

// watch sends what is written from now on. Every list has all that was written before.
func (a *APIServer) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 100000)
	a.mutex.Lock()
	a.watchers[events] = true
	a.mutex.Unlock()
	defer func() {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		delete(a.watchers, events)
	}()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	end := time.After(time.Duration(max(seconds, 1)) * time.Second)
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case event := <-events:
			if _, err := w.Write(append(event, '\n')); err != nil {
				return
			}
			flusher.Flush()
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// write publishes a topology anew; the caller holds the mutex.
func (a *APIServer) write(t *Topology) {
	a.version++
	t.Generation++
	a.listed[t.Node] = encode(t.object(fmt.Sprint(a.version)))
	event := encode(map[string]any{"type": "MODIFIED", "object": a.listed[t.Node]})
	for events := range a.watchers {
		events <- event
	}
}

// touch publishes the topology of a node anew.
func (a *APIServer) touch(i int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.write(a.topologies[i%len(a.topologies)])
}

func (a *APIServer) addPod(pod map[string]any, uid string, cpus int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	metadata := pod["metadata"].(map[string]any)
	a.pods["default/"+metadata["name"].(string)] = &boundPod{Object: pod, UID: uid, CPUs: cpus}
}

func (a *APIServer) getPod(w http.ResponseWriter, key string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pod := a.pods[key]
	if pod == nil {
		status(w, http.StatusNotFound, "NotFound", "pods \""+key+"\" not found")
		return
	}
	_, _ = w.Write(encode(pod.Object))
}

func (a *APIServer) listPods(w http.ResponseWriter) {
	_, _ = w.Write(encode(map[string]any{"kind": "PodList", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}))
}

// bind gives the pod to the node, and acknowledges it there a moment later.
func (a *APIServer) bind(w http.ResponseWriter, r *http.Request, key string) {
	var binding struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Target struct {
			Name string `json:"name"`
		} `json:"target"`
	}
	if err := json.NewDecoder(r.Body).Decode(&binding); err != nil {
		status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pod, t := a.pods[key], a.byNode[binding.Target.Name]
	switch {
	case pod == nil || t == nil:
		status(w, http.StatusNotFound, "NotFound", key+" on "+binding.Target.Name)
		return
	case pod.Node != "":
		status(w, http.StatusConflict, "Conflict", key+" is already assigned to node "+pod.Node)
		return
	}
	pod.Node = t.Node
	zone := a.zoneOf(binding.Metadata.Annotations["topolet.io/zone"])
	time.AfterFunc(250*time.Millisecond, func() { a.acknowledge(t, pod, zone) })
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`))
}

func (a *APIServer) zoneOf(annotation string) int {
	var chosen struct {
		Zones []int `json:"zones"`
	}
	if json.Unmarshal([]byte(annotation), &chosen) != nil || len(chosen.Zones) == 0 {
		return -1
	}
	return chosen.Zones[0]
}

func (a *APIServer) acknowledge(t *Topology, pod *boundPod, zone int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	t.Acknowledged = append(t.Acknowledged, pod.UID)
	if zone >= 0 {
		t.Available[zone] = max(0, t.Available[zone]-pod.CPUs)
	}
	a.write(t)
}

func (a *APIServer) serveLease(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if r.Method == http.MethodGet {
		if a.lease == nil {
			status(w, http.StatusNotFound, "NotFound", "no Lease")
			return
		}
		_, _ = w.Write(encode(a.lease))
		return
	}
	var lease map[string]any
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	metadata, _ := lease["metadata"].(map[string]any)
	if sent, has := metadata["resourceVersion"]; has && a.lease != nil {
		if current := a.lease["metadata"].(map[string]any)["resourceVersion"]; sent != current {
			status(w, http.StatusConflict, "Conflict", "the Lease was changed meanwhile")
			return
		}
	}
	a.version++
	metadata["resourceVersion"] = fmt.Sprint(a.version)
	a.lease = lease
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(encode(lease))
}
