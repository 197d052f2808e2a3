package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Kube is a real API server, and a user who may do everything.
type Kube struct {
	server      string
	authority   string
	certificate string
	key         string
	client      *http.Client
}

func (k *Kube) flags(flags *flag.FlagSet) {
	flags.StringVar(&k.server, "server", "", "the API server's URL")
	flags.StringVar(&k.authority, "authority", "", "the file of the certificate that signed the server's")
	flags.StringVar(&k.certificate, "certificate", "", "the file of the user's certificate")
	flags.StringVar(&k.key, "key", "", "and of its key")
}

func (k *Kube) connect() error {
	pair, err := tls.LoadX509KeyPair(k.certificate, k.key)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(k.authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	k.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}
	return nil
}

func (k *Kube) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(encode(body))
	}
	request, err := http.NewRequestWithContext(ctx, method, k.server+path, sent)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return answer, err
}

type podEvent struct {
	Type   string
	Object struct {
		Metadata struct {
			Name            string
			UID             string
			ResourceVersion string
			Annotations     map[string]string
		}
		Spec struct {
			NodeName string
		}
	}
}

// watchPods tells of all that happens to pods of the namespace default, from now on. Begins again where the server ends it.
func (k *Kube) watchPods(ctx context.Context, handle func(podEvent)) error {
	body, err := k.openWatch(ctx, "")
	if err != nil {
		return err
	}
	go func() {
		version := ""
		for {
			for events := json.NewDecoder(body); ; {
				var event podEvent
				if events.Decode(&event) != nil {
					break
				}
				if event.Object.Metadata.ResourceVersion != "" {
					version = event.Object.Metadata.ResourceVersion
				}
				handle(event)
			}
			_ = body.Close()
			if body, err = k.openWatch(ctx, version); err != nil {
				return
			}
		}
	}()
	return nil
}

// openWatch tries until it is let in: a server to which a kind of objects was added refuses for a while.
func (k *Kube) openWatch(ctx context.Context, version string) (io.ReadCloser, error) {
	for {
		path := "/api/v1/namespaces/default/pods?watch=1&resourceVersion=" + version
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.server+path, nil)
		if err != nil {
			return nil, err
		}
		response, err := k.client.Do(request)
		if err == nil && response.StatusCode == http.StatusOK {
			return response.Body, nil
		}
		if err == nil {
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// inParallel calls the function for 0 to count - 1. Returns an error of one of them.
func inParallel(count int, function func(i int) error) error {
	const workers = 16
	var group sync.WaitGroup
	failed := make(chan error, workers)
	numbers := make(chan int)
	for range workers {
		group.Go(func() {
			for i := range numbers {
				if err := function(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
