package main

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// compareReads asks both about the same pod and container: the answers come from the same objects.
func compareReads(t *tally, both ways, story *teller) {
	subject := "reads of what was made " + story.socket.name
	byID := map[string]proto.Message{
		"PodSandboxStatus": &cri.PodSandboxStatusRequest{PodSandboxId: story.sandbox, Verbose: true},
		"ContainerStatus":  &cri.ContainerStatusRequest{ContainerId: story.container, Verbose: true},
		"ContainerStats":   &cri.ContainerStatsRequest{ContainerId: story.container},
		"PodSandboxStats":  &cri.PodSandboxStatsRequest{PodSandboxId: story.sandbox},
		"ImageStatus":      &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: story.image}, Verbose: true},
		"Status":           &cri.StatusRequest{Verbose: true},
	}
	changing := map[string]bool{"UpdateRuntimeConfig": true, "RemoveImage": true, "PullImage": true, endless: true}
	for _, method := range allMethods() {
		var request []byte
		if typed := byID[method.name]; typed != nil {
			request, _ = proto.Marshal(typed)
		} else if changing[method.name] {
			continue
		}
		direct, through := both.call(context.Background(), method.path, request)
		show := as(dynamicpb.NewMessage(method.output))
		tell := func(got answer) told {
			text := moments.ReplaceAllString(unmeasured(describe(got, show)), "MOMENT")
			return told{method.name, text, got.status.GetCode()}
		}
		t.note(subject, tell(direct), tell(through))
	}
}

const eventWait = 10 * time.Second

// listeners hold the endless stream of events on both sockets.
type listeners struct {
	cancel  context.CancelFunc
	streams [2]chan []byte
}

func listen(both ways) listeners {
	ctx, cancel := context.WithCancel(context.Background())
	all := listeners{cancel: cancel}
	for i, socket := range []socket{both.direct, both.through} {
		all.streams[i] = make(chan []byte, 1000)
		go socket.follow(ctx, runtimePath+endless, all.streams[i])
	}
	// The stream says nothing when it begins; without this a first event could be missed.
	time.Sleep(time.Second)
	return all
}

// compare reads the events up to the last one of the last pod; the runtime sends all of them to both.
func (l listeners) compare(t *tally) {
	defer l.cancel()
	for number := 0; ; number++ {
		direct, through := next(l.streams[0]), next(l.streams[1])
		if direct == nil && through == nil {
			if number == 0 {
				t.note("events", told{text: "some"}, told{text: "none"})
			}
			return
		}
		show := as(&cri.ContainerEventResponse{})
		t.note("events", told{"event", show(direct), 0}, told{"event", show(through), 0})
	}
}

func next(stream chan []byte) []byte {
	select {
	case event := <-stream:
		return event
	case <-time.After(eventWait):
		return nil
	}
}
