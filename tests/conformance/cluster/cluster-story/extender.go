package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	extenderLease     = "topolet-extender"
	extenderNamespace = "topolet-system"
	extenderReplicas  = 2
)

// Extenders are the replicas of topolet-extender, and what stands for their Service: an address from which each
// connection is led to one of them.
type Extenders struct {
	options Options
	client  kubernetes.Interface
	service net.Listener

	mutex    sync.Mutex // of what follows
	replicas []*replica
	cpu      float64 // seconds, of those that have ended
	peak     int     // KiB
	kills    int
	freezes  int
}

type replica struct {
	name    string
	address string
	process *exec.Cmd
}

func startExtenders(ctx context.Context, client kubernetes.Interface, options Options) (*Extenders, error) {
	e := &Extenders{options: options, client: client}
	var err error
	if e.service, err = net.Listen("tcp", options.Service); err != nil {
		return nil, err
	}
	for i := 0; i < extenderReplicas; i++ {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		e.replicas = append(e.replicas, &replica{name: fmt.Sprintf("extender-%d", i), address: address})
		if err := e.start(e.replicas[i]); err != nil {
			return nil, err
		}
	}
	go e.serve()
	return e, e.waitForLeader(ctx)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func (e *Extenders) start(r *replica) error {
	log, err := os.OpenFile(filepath.Join(e.options.Directory, r.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	own := filepath.Join(e.options.Certificates, "extender")
	process := exec.Command(e.options.Extender, "--kubernetes", e.options.ExtenderKubeconfig, "--listen", r.address,
		"--advertise", r.address, "--certificate", filepath.Join(own, "tls.crt"), "--key", filepath.Join(own, "tls.key"),
		"--client-ca", filepath.Join(own, "ca.crt"), "--lease", extenderNamespace+"/"+extenderLease, "--identity", r.name,
		"--metrics-address", "none", "--debug-address", "none")
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	r.process = process
	return nil
}

// leader is the name of the replica that has the Lease, or empty.
func (e *Extenders) leader(ctx context.Context) string {
	lease, err := e.client.CoordinationV1().Leases(extenderNamespace).Get(ctx, extenderLease, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (e *Extenders) waitForLeader(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < time.Minute; pause(ctx, 100*time.Millisecond) {
		if e.leader(ctx) != "" {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("no replica of topolet-extender leads; see their logs in %s", e.options.Directory)
}

// The leader's Lease has expired long before.
const minFreezeTime, maxFreezeTime = 20 * time.Second, 30 * time.Second

// killLeaders kills the replica that leads, again and again, as a crash would, and starts it anew. Every second time it is
// only frozen for a while, in which the other one has its place.
func (e *Extenders) killLeaders(ctx context.Context) error {
	for turn := 1; ; turn++ {
		pause(ctx, e.options.KillExtender)
		if ctx.Err() != nil {
			return nil
		}
		r := e.leading(ctx)
		switch {
		case r == nil:
		case turn%2 == 0:
			e.freeze(ctx, r)
		default:
			e.end(r, syscall.SIGKILL)
			e.countOne(&e.kills)
			if err := e.start(r); err != nil {
				return err
			}
		}
	}
}

// leading is the replica that has the Lease, or null. It adds digits to its name, for each time that it runs.
func (e *Extenders) leading(ctx context.Context) *replica {
	leader := e.leader(ctx)
	for _, r := range e.replicas {
		if strings.HasPrefix(leader, r.name+"_") {
			return r
		}
	}
	return nil
}

func (e *Extenders) freeze(ctx context.Context, r *replica) {
	_ = r.process.Process.Signal(syscall.SIGSTOP)
	pause(ctx, minFreezeTime+time.Duration(rand.Int63n(int64(maxFreezeTime-minFreezeTime))))
	_ = r.process.Process.Signal(syscall.SIGCONT)
	e.countOne(&e.freezes)
}

func (e *Extenders) countOne(number *int) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	*number++
}

func (e *Extenders) end(r *replica, signal syscall.Signal) {
	e.measure(r)
	_ = r.process.Process.Signal(signal)
	_ = r.process.Wait()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.cpu += r.process.ProcessState.UserTime().Seconds() + r.process.ProcessState.SystemTime().Seconds()
}

// measure notes the most memory that the replica had.
func (e *Extenders) measure(r *replica) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Process.Pid))
	if err != nil {
		return
	}
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "VmHWM:" {
			continue
		}
		peak, _ := strconv.Atoi(fields[1])
		e.mutex.Lock()
		e.peak = max(e.peak, peak)
		e.mutex.Unlock()
	}
}

func (e *Extenders) stop() {
	_ = e.service.Close()
	for _, r := range e.replicas {
		if r.process != nil && r.process.ProcessState == nil {
			e.end(r, syscall.SIGTERM)
		}
	}
}

// serve leads each connection to a replica that takes it.
func (e *Extenders) serve() {
	for {
		client, err := e.service.Accept()
		if err != nil {
			return
		}
		go e.lead(client)
	}
}

func (e *Extenders) lead(client net.Conn) {
	defer client.Close()
	for _, i := range rand.Perm(len(e.replicas)) {
		backend, err := net.Dial("tcp", e.replicas[i].address)
		if err != nil {
			continue
		}
		defer backend.Close()
		go func() { _, _ = io.Copy(backend, client); _ = backend.Close() }()
		_, _ = io.Copy(client, backend)
		return
	}
}
