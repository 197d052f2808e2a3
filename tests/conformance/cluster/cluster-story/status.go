package main

// The status of a pod, as a kubelet reports it.

func (s *Story) containerStatus(name string, isReady bool, state map[string]any) map[string]any {
	return map[string]any{"name": name, "image": s.options.Image, "imageID": "", "ready": isReady, "restartCount": 0,
		"state": state}
}

var terminated = map[string]any{"terminated": map[string]any{"exitCode": 0}}

// statusOf tells how far a pod is.
func (s *Story) statusOf(running *Running) map[string]any {
	initial, mains := []any{}, []any{}
	for _, part := range running.planned.Parts {
		status := s.partStatus(running, part)
		if part.Kind == Main {
			mains = append(mains, status)
		} else {
			initial = append(initial, status)
		}
	}
	status := map[string]any{"phase": "Pending", "containerStatuses": mains}
	if len(initial) > 0 {
		status["initContainerStatuses"] = initial
	}
	if running.isComplete() {
		status["phase"] = "Running"
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "True"}}
	}
	return status
}

func (s *Story) partStatus(running *Running, part Part) map[string]any {
	switch {
	case running.over[part.Name]:
		return s.containerStatus(part.Name, true, terminated)
	case running.started[part.Name]:
		status := s.containerStatus(part.Name, true, map[string]any{"running": map[string]any{}})
		resources := running.planned.resources(part)
		status["resources"], status["allocatedResources"] = resources, resources.Requests
		return status
	case running.denied[part.Name] != "":
		return s.containerStatus(part.Name, false, map[string]any{
			"waiting": map[string]any{"reason": "CreateContainerError", "message": running.denied[part.Name]}})
	default:
		return s.containerStatus(part.Name, false, map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}})
	}
}

func (s *Story) endedStatus(running *Running) map[string]any {
	statuses := []any{}
	for _, part := range running.planned.Parts {
		if part.Kind == Main {
			statuses = append(statuses, s.containerStatus(part.Name, false, terminated))
		}
	}
	return map[string]any{"phase": "Succeeded", "containerStatuses": statuses}
}
