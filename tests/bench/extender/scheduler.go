package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Scheduler calls an extender as kube-scheduler does: with Go's JSON, over connections that are kept, with a client
// certificate.
type Scheduler struct {
	url    string
	client *http.Client
}

// Trip is how long one call took: from the first byte sent to the last one read, and with Go's JSON on both ends.
type Trip struct {
	Wire  time.Duration
	Whole time.Duration
}

type extenderArgs struct {
	Pod       any
	Nodes     any
	NodeNames *[]string
}

type filterResult struct {
	Nodes                      any
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

type hostPriority struct {
	Host  string
	Score int64
}

type bindingArgs struct {
	PodName      string
	PodNamespace string
	PodUID       string
	Node         string
}

type bindingResult struct {
	Error string
}

func newScheduler(address, certificates string) (*Scheduler, error) {
	own := filepath.Join(certificates, "scheduler")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(own, "tls.crt"), filepath.Join(own, "tls.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(own, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
	}
	return &Scheduler{url: "https://" + address, client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

func (s *Scheduler) call(verb string, arguments, result any) (Trip, error) {
	begin := time.Now()
	body, err := json.Marshal(arguments)
	if err != nil {
		return Trip{}, err
	}
	request, err := http.NewRequest(http.MethodPost, s.url+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return Trip{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	sent := time.Now()
	response, err := s.client.Do(request)
	if err != nil {
		return Trip{}, err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	wire := time.Since(sent)
	if err != nil {
		return Trip{}, err
	}
	if response.StatusCode != http.StatusOK {
		return Trip{}, fmt.Errorf("/%s: %s: %s", verb, response.Status, answer)
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return Trip{}, fmt.Errorf("/%s: %w", verb, err)
	}
	return Trip{Wire: wire, Whole: time.Since(begin)}, nil
}
