package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Granted is what a node has left for one container more, by zone.
type Granted struct {
	AtEnd  []Left  // CPUs, once the pods that are to come are there
	Least  []Left  // CPUs, at the worst moment until then
	Memory []int64 // at most
}

// isEqual: the object says what the node grants.
func (g Granted) isEqual(published Published) bool {
	return slices.EqualFunc(g.AtEnd, published.Zones, func(left Left, zone Zone) bool {
		return left == zone.Left && left.most() == zone.Available
	}) && !g.hasLessMemory(published)
}

func (g Granted) hasLessMemory(published Published) bool {
	for i, zone := range published.Zones {
		if zone.Memory > g.Memory[i] {
			return true
		}
	}
	return false
}

// overPromised is in how many zones the object says more than the node grants.
func (g Granted) overPromised(published Published) int {
	number := 0
	for i, zone := range published.Zones {
		if zone.Available > g.Least[i].most() || zone.Left.isMoreThan(g.Least[i]) || zone.Memory > g.Memory[i] {
			number++
		}
	}
	return number
}

// grant replays `lines` on a new simulated node, and has it place what is pending.
func (s *Story) grant(node *Node, lines []Line, pending []Pending, zones []Zone) (Granted, error) {
	replay, err := openReplay(s.options, node, lines)
	if err != nil {
		return Granted{}, err
	}
	defer replay.close()
	now := replay.holdings.available(node.Machine, zones)
	granted := Granted{Least: slices.Clone(now)}
	for _, pod := range pending {
		if _, err := replay.create(pod, func() {
			for i, left := range replay.holdings.available(node.Machine, zones) {
				least := &granted.Least[i]
				*least = Left{min(least.Pool, left.Pool), min(least.Isolated, left.Isolated)}
			}
		}); err != nil {
			return Granted{}, err
		}
	}
	granted.AtEnd = replay.holdings.available(node.Machine, zones)
	granted.Memory = replay.holdings.memory(zones)
	return granted, replay.probe(zones)
}

// pendingAt are the acknowledged pods of which the ledger has not all containers after `lines`, in the order of their
// creation. Of those that it had and has no more, a reader may know or not.
func (s *Story) pendingAt(published Published, lines []Line, withEnded bool) []Pending {
	created, ended := readLines(lines)
	node := s.nodes[published.Node]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var pending []Pending
	for name, record := range s.pods {
		uid := string(record.Object.UID)
		if ended[uid] && !withEnded || !slices.Contains(published.Acknowledged, uid[:8]) {
			continue
		}
		found := Pending{Pod: record.Object, Planned: s.begun[name], Devices: node.devices.everGiven(name)}
		if ended[uid] {
			found.Planned = s.planned[name] // as it was resized
		}
		for _, part := range found.Planned.Parts {
			if !created[uid+"/"+part.Name] {
				found.Parts = append(found.Parts, part)
			}
		}
		if len(found.Parts) > 0 {
			pending = append(pending, found)
		}
	}
	sort.Slice(pending, func(i, j int) bool {
		a, b := pending[i].Pod, pending[j].Pod
		if !a.CreationTimestamp.Time.Equal(b.CreationTimestamp.Time) {
			return a.CreationTimestamp.Time.Before(b.CreationTimestamp.Time)
		}
		return a.UID < b.UID
	})
	return pending
}

// readLines: which containers were created ("POD/CONTAINER") of pods that are there, and which pods have ended.
func readLines(lines []Line) (created, ended map[string]bool) {
	created, ended = map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		var operation struct{ Op, Pod, Container string }
		_ = json.Unmarshal([]byte(line.Text), &operation)
		switch {
		case operation.Op == "create" && line.Answer.Outcome == "placed":
			created[operation.Pod+"/"+operation.Container] = true
		case operation.Op == "remove_pod":
			maps.DeleteFunc(created, func(key string, _ bool) bool { return strings.HasPrefix(key, operation.Pod+"/") })
			ended[operation.Pod] = true
		}
	}
	return created, ended
}

// isUnsettled: init containers are underway, or a resize is. Then an object may say less than the node grants at the end:
// a zone counts the most that pods will have there at a time.
func isUnsettled(node *Node, published Published, pending []Pending) bool {
	return node.isUnsure(published) || haveInitial(pending)
}

func haveInitial(pending []Pending) bool {
	return slices.ContainsFunc(pending, func(p Pending) bool {
		return slices.ContainsFunc(p.Planned.Parts, func(part Part) bool { return part.Kind == Initial })
	})
}

// check compares a published object with what a node grants that is where the object says. Where its generation is one
// in the middle of an operation, the node was there before or after it.
func (s *Story) check(published Published) error {
	node := s.nodes[published.Node]
	lines := node.history()
	before := sort.Search(len(lines), func(i int) bool { return lines[i].Answer.Generation > published.Generation })
	var found []Granted
	isInitial := false
	for length := before; length <= min(before+1, len(lines)); length++ {
		for _, withEnded := range []bool{true, false} {
			pending := s.pendingAt(published, lines[:length], withEnded)
			granted, err := s.grant(node, lines[:length], pending, published.Zones)
			if err != nil {
				return err
			}
			over := granted.overPromised(published)
			if granted.isEqual(published) || over == 0 && isUnsettled(node, published, pending) {
				return nil
			}
			isByDevice, err := s.isRightWithoutDevices(node, published, lines[:length], pending)
			if err != nil {
				return err
			}
			if isByDevice {
				s.noteOverPromised(&s.result.OverByDevice, over)
				return nil
			}
			found = append(found, granted)
			isInitial = isInitial || haveInitial(pending)
		}
	}
	return s.judgeDifference(published, found, isInitial)
}

// isRightWithoutDevices: the object says what the node would grant if pods that are to come had no devices where they have
// got them just now. In which zone these are an agent is told only then.
func (s *Story) isRightWithoutDevices(node *Node, published Published, lines []Line, pending []Pending) (bool, error) {
	without := slices.Clone(pending)
	hasDevices := false
	for i := range without {
		if len(without[i].Devices) > 0 && node.devices.isNew(without[i].Pod.Name, published.SeenAt) {
			hasDevices = true
			without[i].Devices = nil
		}
	}
	if !hasDevices {
		return false, nil
	}
	granted, err := s.grant(node, lines, without, published.Zones)
	return err == nil && (granted.isEqual(published) ||
		granted.overPromised(published) == 0 && isUnsettled(node, published, pending)), err
}

func (s *Story) noteOverPromised(number *int, zones int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	*number += zones
	if zones == 0 {
		s.result.Under++
	}
}

// judgeDifference: an object that says more than the node grants in any way that it may have been is a fault, and so is
// one that says less; but while a resize is underway, of which nobody knows yet whether the node grants it, and, where
// nobody has chosen zones, while init containers run: in which zone the main ones will be depends on which end first.
func (s *Story) judgeDifference(published Published, found []Granted, isInitial bool) error {
	zones := len(published.Zones)
	var granted [][]Left
	for _, one := range found {
		zones = min(zones, one.overPromised(published))
		granted = append(granted, one.AtEnd)
	}
	if s.nodes[published.Node].isUnsure(published) {
		s.noteOverPromised(&s.result.OverByResize, zones)
		return nil
	}
	if isInitial && !s.hasExtender() {
		s.noteOverPromised(&s.result.OverByInitial, zones)
		return nil
	}
	var said []Left
	for _, zone := range published.Zones {
		said = append(said, zone.Left)
	}
	s.noteOverPromised(&s.result.OverUnexplained, zones)
	return fmt.Errorf("%s at generation %d with %v acknowledged publishes %v (%d zones over-promised), and grants one of %v",
		published.Node, published.Generation, published.Acknowledged, said, zones, granted)
}
