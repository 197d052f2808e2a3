// The runtime's side of NRI as containerd has it, with NRI's own multiplexer and ttrpc: calls a plugin in frames of
// several sizes, and asks it for answers of several. The plugin is tests/fronts/nri/echo_plugin, which answers Synchronize
// with the name of the first pod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// chunked sends everything in frames of at most so many bytes: the multiplexer makes a frame of each write.
type chunked struct {
	net.Conn
	size int
}

func (c chunked) Write(bytes []byte) (int, error) {
	written := 0
	for len(bytes) > 0 {
		piece := bytes[:min(c.size, len(bytes))]
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		bytes = bytes[len(piece):]
	}
	return written, nil
}

// registrar is the runtime's service. Its one call means that the plugin has come.
type registrar struct{ registered chan string }

func (r registrar) RegisterPlugin(_ context.Context, request *api.RegisterPluginRequest) (*api.Empty, error) {
	r.registered <- request.GetPluginIdx() + "-" + request.GetPluginName()
	return &api.Empty{}, nil
}

func (registrar) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// accept waits for the plugin, and returns a client of it whose frames have at most so many bytes.
func accept(listener net.Listener, frame int) (api.PluginService, func(), error) {
	trunk, err := listener.Accept()
	if err != nil {
		return nil, nil, err
	}
	// As in a runtime: what comes before there is somebody to take it would be lost.
	mux := multiplex.Multiplex(trunk, multiplex.WithBlockedRead())
	plugin, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		return nil, nil, err
	}
	runtime, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		return nil, nil, err
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return nil, nil, err
	}
	service := registrar{make(chan string, 1)}
	api.RegisterRuntimeService(server, service)
	go server.Serve(context.Background(), runtime)
	mux.Unblock()
	select {
	case <-service.registered:
	case <-time.After(10 * time.Second):
		return nil, nil, errors.New("the plugin does not register")
	}
	return api.NewPluginClient(ttrpc.NewClient(chunked{plugin, frame})), func() { mux.Close() }, nil
}

// call sends a pod with a name of so many bytes, and compares it with the answer.
func call(plugin api.PluginService, length int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	name := strings.Repeat("n", length)
	answer, err := plugin.Synchronize(ctx, &api.SynchronizeRequest{Pods: []*api.PodSandbox{{Name: name}}})
	if err != nil {
		return err
	}
	if updates := answer.GetUpdate(); len(updates) != 1 || updates[0].GetContainerId() != name {
		return fmt.Errorf("the answer does not have the %d bytes that were sent", length)
	}
	return nil
}

// tooLong is more than the multiplexer keeps unread: 256 frames of 4,096 bytes.
const tooLong = 1100000

// try makes calls on one connection. An answer that is too long must be an error, after which the next call is answered.
func try(listener net.Listener, frame, length int) error {
	plugin, end, err := accept(listener, frame)
	if err != nil {
		return err
	}
	defer end()
	for range 10 {
		if length < tooLong {
			if err := call(plugin, length); err != nil {
				return err
			}
			continue
		}
		if err := call(plugin, length); status.Code(err) != codes.ResourceExhausted {
			return fmt.Errorf("the answer was not refused: %w", err)
		}
		if err := call(plugin, 1); err != nil {
			return err
		}
	}
	return nil
}

func run(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	failed := false
	for _, frame := range []int{1, 100, 4096, 4097, 4 << 20} {
		for _, length := range []int{1, 100, 4000, 4097, 20000, 900000, 1040000, tooLong} {
			// Frames of one byte take long for so many.
			if frame == 1 && length > 20000 {
				continue
			}
			result := "PASS"
			if err := try(listener, frame, length); err != nil {
				result, failed = "FAIL", true
				fmt.Fprintf(os.Stderr, "frames of %d, answers of %d: %v\n", frame, length, err)
			}
			fmt.Printf("%d\t%d\t%s\n", frame, length, result)
		}
	}
	if failed {
		return errors.New("some calls failed")
	}
	return nil
}

func main() {
	socket := flag.String("socket", "", "where it listens")
	flag.Parse()
	if err := run(*socket); err != nil {
		fmt.Fprintln(os.Stderr, "nri-frames:", err)
		os.Exit(1)
	}
}
