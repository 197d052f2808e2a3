// Asks a container runtime the same through its own CRI socket and through topolet's, and compares all that comes back.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/dynamicpb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func pause() { time.Sleep(20 * time.Millisecond) }

func main() {
	direct := flag.String("direct", "", "the runtime's CRI endpoint")
	through := flag.String("through", "", "topolet's CRI endpoint")
	verbose := flag.Bool("verbose", false, "also print what is the same")
	results := flag.String("results", "", "a directory whose files direct and through get a line for each subject")
	var here world
	flag.StringVar(&here.image, "image", "", "a busybox that the runtime has")
	flag.StringVar(&here.remote, "remote-image", "", "an image that can be pulled and removed")
	flag.StringVar(&here.logs, "logs", "", "a directory for the containers' logs")
	flag.StringVar(&here.cgroups, "cgroups", "", "the cgroup the pods' cgroups are made below")
	flag.Parse()
	here.checkout = here.logs + "/checkpoint.tar"
	both, err := connect(*direct, *through)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(2)
	}
	tally := newTally(*verbose)
	compareMalformed(tally, both)
	compareStrangers(tally, both)
	compareMetadata(tally, both)
	compareStories(tally, both, here)
	fine, err := tally.table(*results)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(2)
	}
	if !fine {
		os.Exit(1)
	}
}

// ways are the two sockets of one runtime.
type ways struct{ direct, through socket }

func connect(direct, through string) (ways, error) {
	var both ways
	var err error
	if both.direct, err = dial("direct", direct); err != nil {
		return both, err
	}
	both.through, err = dial("through", through)
	return both, err
}

func (w ways) call(ctx context.Context, method string, request []byte) (answer, answer) {
	return w.direct.call(ctx, method, request), w.through.call(ctx, method, request)
}

func plainly(name string, got answer, show func([]byte) string) told {
	return told{name, describe(got, show), got.status.GetCode()}
}

// endless is the stream that ends only when its caller leaves; it has a test of its own.
const endless = "GetContainerEvents"

// compareMalformed asks every method what the runtime refuses or answers with nothing.
func compareMalformed(t *tally, both ways) {
	for _, method := range allMethods() {
		if method.name == endless {
			continue
		}
		nonsense := filled(method.input, "nonsense", 4)
		requests := map[string][]byte{
			"an empty request":          {},
			"every field set":           nonsense,
			"fields that nobody knows":  withUnknownField(nonsense),
			"a later CRI's empty one":   withUnknownField(nil),
			"bytes that are no message": {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x01},
			"text that is not UTF-8":    bytes.ReplaceAll(filled(method.input, "@~", 2), []byte("@~"), []byte("\xff\xfe")),
		}
		for name, request := range requests {
			direct, through := both.call(context.Background(), method.path, request)
			show := as(dynamicpb.NewMessage(method.output))
			tell := func(got answer) told {
				normal := names{known: map[string]string{}}
				return told{method.name + ": " + name, unmeasured(normal.apply(describe(got, show))), got.status.GetCode()}
			}
			t.note("malformed requests", tell(direct), tell(through))
		}
	}
}

// compareStrangers asks for what the CRI does not have.
func compareStrangers(t *tally, both ways) {
	for _, path := range []string{
		"/runtime.v1.RuntimeService/NotYetInvented", "/runtime.v1.ImageService/NotYetInvented",
		"/runtime.v1alpha2.RuntimeService/Version", "/runtime.v1alpha2.RuntimeService/CreateContainer",
		"/runtime.v1alpha2.ImageService/ListImages", "/runtime.v2.RuntimeService/CreateContainer", "/no.such.Service/Call", "/x/y/z",
	} {
		direct, through := both.call(context.Background(), path, nil)
		t.note("unknown methods", plainly(path, direct, exactly), plainly(path, through, exactly))
	}
}

// compareMetadata looks at what travels beside the messages.
func compareMetadata(t *tally, both ways) {
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-text", "some", "x-bin", "\x00\xff")
	direct, through := both.call(ctx, runtimePath+"Version", nil)
	t.note("metadata and deadlines", plainly("additional metadata", direct, as(&cri.VersionResponse{})), plainly("additional metadata", through, as(&cri.VersionResponse{})))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	direct, through = both.call(ctx, runtimePath+"Version", nil)
	t.note("metadata and deadlines", plainly("a deadline that has passed", direct, as(&cri.VersionResponse{})), plainly("a deadline that has passed", through, as(&cri.VersionResponse{})))
}

// compareStories runs the same story over both, while both listen to the events of both.
func compareStories(t *tally, both ways, here world) {
	listening := listen(both)
	tellers := []*teller{{world: here, socket: both.direct}, {world: here, socket: both.through}}
	for _, teller := range tellers {
		teller.names = names{known: map[string]string{}}
		teller.onRunning = func() { compareReads(t, both, teller) }
		teller.tell()
	}
	for i, direct := range tellers[0].told {
		t.note("the story of a pod", direct, tellers[1].told[i])
	}
	listening.compare(t)
}
