package main

import (
	"fmt"
	"math/rand"
	"time"
)

// So many bursts stay until the end.
const stayingBursts = 3

// The running time of an init container.
const initialTime = 2 * time.Second

// plan makes pods of mixed sizes and forms. Those of the last bursts stay, so that in the end there are more than fit.
func plan(options Options) []PlannedPod {
	random := rand.New(rand.NewSource(options.Seed))
	var pods []PlannedPod
	for i := 0; i < options.Pods; i++ {
		pod := makeShared(random)
		if random.Intn(5) > 0 {
			pod = makeGuaranteed(random)
			if options.PlainNodes > 0 {
				pod.Policy = []string{"any", "single", "single"}[i%3]
			}
		}
		pod.Name = fmt.Sprintf("pod-%03d", i)
		if i < options.Pods-stayingBursts*options.Burst {
			pod.Lifetime = time.Duration(15+random.Intn(45)) * time.Second
		}
		pods = append(pods, pod)
	}
	return pods
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.Intn(len(values))] }

// makeShared: Burstable, half of them resized.
func makeShared(random *rand.Rand) PlannedPod {
	amount := func() int64 { return int64(100 + random.Intn(15)*100) }
	pod := PlannedPod{Parts: []Part{{Name: mainName, Milli: amount(), Memory: memoryBytes}}}
	if random.Intn(2) == 0 {
		pod.ResizeTo = amount()
	}
	return pod
}

func size(random *rand.Rand) int64 { return 1000 * pick[int64](random, 1, 1, 2, 2, 2, 3, 4, 4, 6, 8) }

func makeGuaranteed(random *rand.Rand) PlannedPod {
	main := Part{Name: mainName, Milli: size(random), Memory: memoryBytes}
	pod := PlannedPod{Guaranteed: true}
	switch random.Intn(12) {
	case 0, 1:
		pod.Parts = append(severalBefore(random, &main), main)
	case 2, 3:
		pod.Parts = append(initialBefore(random, main), main)
	case 4:
		sidecar := Part{Name: "sidecar", Kind: Sidecar, Milli: pick[int64](random, 100, 1000), Memory: memoryBytes}
		pod.Parts = append(append(initialBefore(random, main)[:random.Intn(2)], sidecar), main)
	case 5:
		main.Memory = pick[int64](random, 12<<30, 24<<30, 40<<30)
		pod.Parts = []Part{main}
	case 6:
		main.Devices = pick(random, 1, 1, 2)
		pod.Parts = []Part{main}
		if random.Intn(2) == 0 { // the kubelet gives the device at once, and the container that has it comes later
			pod.Parts = append(initialBefore(random, main), main)
		}
	default:
		pod.Parts = []Part{main}
		if random.Intn(3) == 0 {
			pod.ResizeTo = pick(random, max(1000, main.Milli/2000*1000), main.Milli+1000, main.Milli+2000)
		}
	}
	return pod
}

// severalBefore are main containers beside `main`, which may be no larger than fits in most zones together with them.
func severalBefore(random *rand.Rand, main *Part) []Part {
	main.Milli = 1000 * pick[int64](random, 1, 2, 3, 4)
	others := []Part{{Name: "second", Milli: pick[int64](random, 500, 1000, 2000, 3000), Memory: memoryBytes}}
	if random.Intn(3) == 0 {
		others = append(others, Part{Name: "third", Milli: 1000, Memory: memoryBytes})
	}
	return others
}

// initialBefore are one or two init containers, smaller, as large or larger than `main`.
func initialBefore(random *rand.Rand, main Part) []Part {
	var parts []Part
	for i := 0; i <= random.Intn(2); i++ {
		milli := pick(random, 500, 1000, main.Milli, min(2*main.Milli, 8000))
		parts = append(parts, Part{Name: fmt.Sprintf("%s%d", initPrefix, i), Kind: Initial, Milli: milli, Memory: memoryBytes})
	}
	return parts
}
