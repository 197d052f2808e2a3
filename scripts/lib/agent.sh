# shellcheck shell=bash disable=SC2034,SC2154 # workdir, daemon, plugins and logs are shared between the files
# A real topolet-agent between a real topoletd and a real control plane, whose scheduler reads what it publishes.

kAgentProgram=build/quick/cluster/agent/topolet-agent
kTopology=noderesourcetopologies.topology.node.k8s.io
kAgentMetrics=''

run_agent() {
  say "Trying topolet-agent with a scheduler"
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects"
  start_runtime "$workdir"
  start_strict_topoletd here
  start_control_plane "$workdir" 2>>"$logs/agent.log"
  make_node
  start_agent here
  check through "agent: publishes the topology of its node" 20 publishes 1
  check through "agent: writes the object once more, for schedulers that looked too early" 20 is_touched
  start_scheduler "$workdir" overreserve "$kManifests/scheduler-overreserve.yaml"
  # Until it has looked at the objects once more, it takes no pod to a node with pods that it has not placed itself; and
  # what it has rejected for that it tries again only when something changes.
  sleep 7
  for pod in one two three four; do make_pod "$pod"; done
  check through "agent: the scheduler places what fits" 30 are_bound 1
  check through "agent: what is bound is published as taken" 10 publishes 0
  check through "agent: nothing else is bound" 1 stay_bound 1
  logged kube "$workdir" admin delete pod "$(bound_pods | head -n 1)" --grace-period=0 --force
  check through "agent: the next pod is bound when one has left" 30 are_bound 1
  check through "agent: only one" 1 stay_bound 1
  end_program "$workdir" topolet-agent
  start_agent here
  logged kube "$workdir" admin delete pods --all --grace-period=0 --force
  check through "agent: goes on after a kill" 20 publishes 1
  check through "agent: its metrics say so" 10 measures 'topolet_agent_topology_failed_writes_total 0'
  stop_control_plane "$workdir"
  end_program "$workdir" topolet-agent
  cp "$workdir"/topolet-agent.log "$logs" 2>/dev/null || true
  close_workdir
}

# start_strict_topoletd NODE: denies what does not fit on one NUMA node. One CPU is left to whoever shares.
start_strict_topoletd() {
  run_program "$workdir" topoletd "$daemon" --config /dev/null --daemon.listen="unix://$workdir/topolet.sock" \
    --daemon.control="$workdir/control.sock" --daemon.watch="unix://$workdir/watch.sock" \
    --daemon.runtime="unix://$workdir/containerd.sock" --daemon.state-dir="$workdir/state-of-topolet" \
    --daemon.node-name="$1" --daemon.plugin-dir="$plugins" --plugins.enable=numa --plugins.required.numa=true \
    --numa.policy=single-numa-node \
    --placement.min-shared-cpus="$(($(nproc) - 1))"
  wait_until 20 topolet_answers || die "topoletd did not start; see $workdir/topoletd.log"
}

# Makes the accounts that a controller makes otherwise.
make_default_accounts() {
  put accounts <<YAML
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: kube-system}}
YAML
  logged kube "$workdir" admin create -f "$(object accounts)"
}

# A node with more CPUs than topoletd gives out, so that it is the topology that counts.
make_node() {
  local resources='{"cpu": "1000", "memory": "1000Gi", "pods": "110"}'
  put node <<<'{apiVersion: v1, kind: Node, metadata: {name: here}}'
  # NodeResourceTopologyMatch passes over nodes without any pod that runs.
  put bystander <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: bystander, namespace: kube-system}
spec: {nodeName: here, containers: [{name: main, image: none}]}
YAML
  logged kube "$workdir" admin apply -f "$kManifests/crd.yaml"
  make_default_accounts
  logged kube "$workdir" admin create -f "$(object node)"
  logged kube "$workdir" admin patch node here --type merge -p '{"spec": {"taints": []}}'
  logged kube "$workdir" admin patch node here --subresource=status \
    -p "{\"status\": {\"capacity\": $resources, \"allocatable\": $resources}}"
  logged kube "$workdir" admin create -f "$(object bystander)"
  logged kube "$workdir" admin patch pod bystander -n kube-system --subresource=status --type merge \
    -p '{"status": {"phase": "Running"}}'
  check through "agent: the kind NodeResourceTopology is there" 20 logged kube "$workdir" admin get "$kTopology"
}

# start_agent NODE: $agent_user is the name of a kubeconfig.
start_agent() {
  kAgentMetrics=127.0.0.1:$(free_port)
  run_program "$workdir" topolet-agent "$kAgentProgram" --watch "unix://$workdir/watch.sock" --node-name "$1" \
    --kubernetes "$workdir/${agent_user:-admin}.kubeconfig" --pod-resources none --extender-lease "$kNamespace/topolet-extender" \
    --metrics-address "$kAgentMetrics" --page-address none
}

make_pod() {
  put "$1" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default}
spec:
  schedulerName: topology-aware
  containers:
  - name: main
    image: none
    resources: {requests: {cpu: "1", memory: 64Mi}, limits: {cpu: "1", memory: 64Mi}}
YAML
  logged kube "$workdir" admin create -f "$(object "$1")"
}

# publishes NUMBER: so many exclusive CPUs in the first zone.
publishes() {
  [[ $(kube "$workdir" admin get "$kTopology" here -o \
    jsonpath='{.zones[0].resources[?(@.name=="cpu")].available}' 2>/dev/null) == "$1" ]]
}

is_touched() { kube "$workdir" admin get "$kTopology" here -o jsonpath='{.attributes}' | grep -q topolet.io/touched; }

bound_pods() {
  kube "$workdir" admin get pods -o jsonpath='{range .items[?(@.spec.nodeName=="here")]}{.metadata.name}{"\n"}{end}'
}

are_bound() { (($(bound_pods | wc -l) == $1)); }

# Longer than a scheduler takes to look at the objects again.
stay_bound() {
  sleep 8
  are_bound "$1"
}

measures() { curl --silent "http://$kAgentMetrics/metrics" | grep -qx "$1"; }
