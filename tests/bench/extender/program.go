package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Program is a topolet-extender that runs, the only replica.
type Program struct {
	Address string
	metrics string
	process *exec.Cmd
	start   func() *exec.Cmd
}

// startProgram runs topolet-extender against the server. What it needs and what it logs are kept in the directory.
func startProgram(file, certificates, directory string, api *APIServer) (*Program, error) {
	kubeconfig := filepath.Join(directory, "kubeconfig")
	authority := filepath.Join(directory, "apiserver.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.server.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: bench
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
clusters: [{name: bench, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: bench, user: {token: bench}}]
`, api.server.URL, authority)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p := &Program{Address: freeAddress(), metrics: freeAddress()}
	own := filepath.Join(certificates, "extender")
	p.start = func() *exec.Cmd {
		log, err := os.OpenFile(filepath.Join(directory, "topolet-extender.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fail(err)
		}
		defer log.Close()
		process := exec.Command(file, "--kubernetes", kubeconfig, "--listen", p.Address,
			"--certificate", filepath.Join(own, "tls.crt"), "--key", filepath.Join(own, "tls.key"),
			"--client-ca", filepath.Join(own, "ca.crt"), "--metrics-address", p.metrics, "--debug-address", "none",
			"--lease", "none")
		process.Stdout, process.Stderr = log, log
		process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := process.Start(); err != nil {
			fail(err)
		}
		return process
	}
	p.process = p.start()
	return p, p.waitUntilReady()
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (p *Program) waitUntilReady() error {
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		response, err := http.Get("http://" + p.metrics + "/readyz")
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("topolet-extender is not ready after a minute; see its log")
}

// restart kills it and starts it anew. Returns how long it took from there until it was ready.
func (p *Program) restart() (time.Duration, error) {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
	begin := time.Now()
	p.process = p.start()
	err := p.waitUntilReady()
	return time.Since(begin), err
}

func (p *Program) stop() {
	_ = p.process.Process.Signal(syscall.SIGTERM)
	_ = p.process.Wait()
}

// memory is what it has resident, in MiB.
func (p *Program) memory() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// cpuSeconds is its CPU time, user and system; see proc(5).
func (p *Program) cpuSeconds() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process.Process.Pid))
	fields := strings.Fields(string(text)[strings.LastIndex(string(text), ")")+1:])
	const ticks = 100 // USER_HZ
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks
}

// Histogram is one series of a histogram of its metrics: how many values were at most so many seconds.
type Histogram map[float64]float64

// callSeconds are the histograms topolet_extender_call_seconds, by the call.
func (p *Program) callSeconds() (map[string]Histogram, error) {
	response, err := http.Get("http://" + p.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return readHistograms(response.Body, "topolet_extender_call_seconds_bucket{"), nil
}

func readHistograms(text io.Reader, prefix string) map[string]Histogram {
	found := map[string]Histogram{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		line, isOfIt := strings.CutPrefix(lines.Text(), prefix)
		labels, value, isWhole := strings.Cut(line, "} ")
		if !isOfIt || !isWhole {
			continue
		}
		var call string
		var bound float64
		for _, label := range strings.Split(labels, ",") {
			name, quoted, _ := strings.Cut(label, "=")
			switch text := strings.Trim(quoted, `"`); name {
			case "le":
				bound, _ = strconv.ParseFloat(text, 64)
			case "call", "verb", "method":
				call = text
			}
		}
		count, _ := strconv.ParseFloat(value, 64)
		if found[call] == nil {
			found[call] = Histogram{}
		}
		found[call][bound] += count
	}
	return found
}

// quantile is the bound of the bucket in which the quantile is, of what came since the histogram before; 0 without any.
func (h Histogram) quantile(q float64, before Histogram) float64 {
	var bounds []float64
	most := 0.0
	for bound, count := range h {
		bounds = append(bounds, bound)
		most = max(most, count-before[bound])
	}
	sort.Float64s(bounds)
	for _, bound := range bounds {
		if most > 0 && h[bound]-before[bound] >= q*most {
			return bound
		}
	}
	return 0
}
