# shellcheck shell=bash disable=SC2034,SC2154 # workdir, daemon, plugins and logs are shared between the files
# Twenty nodes, one of them real, and pods that come in bursts: how many are denied by their node, with schedulers that
# know less or more of its zones. tests/conformance/cluster/cluster-story plays it.

kStorySchedulers=(none passthrough overreserve)
kStoryNodes=20

run_story() {
  local scheduler
  for scheduler in "${kStorySchedulers[@]}"; do play_cluster_story "$scheduler"; done
  compare_denials
}

# play_cluster_story SCHEDULER: leaves $logs/story-SCHEDULER.json.
play_cluster_story() {
  local scheduler=$1 options=()
  say "Playing a cluster of $kStoryNodes nodes (scheduler: $scheduler; about five minutes)"
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects" "$workdir/story"
  start_runtime "$workdir"
  start_strict_topoletd
  start_control_plane "$workdir" 2>>"$logs/story.log"
  logged kube "$workdir" admin apply -f "$kManifests/crd.yaml"
  check through "story ($scheduler): the kind NodeResourceTopology is there" 20 logged kube "$workdir" admin get "$kTopology"
  make_default_accounts
  start_cluster_kubelet
  start_agent topolet-node
  if [[ $scheduler == overreserve ]]; then options=(--must-fit); fi
  build_cluster_story
  cluster-story --kubeconfig "$workdir/admin.kubeconfig" --topolet "$PWD/$kCommandProgram" --agent "$PWD/$kAgentProgram" \
    --plugins "$plugins" --directory "$workdir/story" --image "$kStoryImage" --real-node topolet-node --nodes $((kStoryNodes - 1)) \
    --scheduler "$workdir/story/scheduler" "${options[@]}" >"$logs/story-$scheduler.json" 2>>"$logs/story.log" &
  local story=$! code=0
  wait_until 120 all_are_published || say "not all nodes are published"
  start_scheduler "$workdir" "$scheduler" "$(story_scheduler "$scheduler")"
  cp "$workdir/kube-scheduler-$scheduler.pid" "$workdir/story/scheduler.new"
  mv "$workdir/story/scheduler.new" "$workdir/story/scheduler"
  wait "$story" || code=$?
  check through "story ($scheduler): what is published is what is granted, and what waits fits nowhere" 0 test "$code" = 0
  cp "$workdir"/*.log "$workdir"/story/*.log "$logs" 2>/dev/null || true
  end_program "$workdir" kubelet
  end_program "$workdir" topolet-agent
  stop_control_plane "$workdir"
  close_workdir
}

# Prints the file of the scheduler's configuration.
story_scheduler() {
  if [[ $1 != none ]]; then
    echo "$kManifests/scheduler-$1.yaml"
    return
  fi
  cat >"$workdir/scheduler-none.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: topology-aware}]
YAML
  echo "$workdir/scheduler-none.yaml"
}

# A kubelet with an API server, which keeps one of two CPUs for the system as `topolet config kubelet` would.
start_cluster_kubelet() {
  write_user "$workdir" kubelet system:node:topolet-node system:nodes
  kKubeletConfiguration='systemReserved: {cpu: "1"}' start_kubelet "$workdir/topolet.sock" false none "$logs/story-kubelet.log" \
    --kubeconfig "$workdir/kubelet.kubeconfig"
  wait_until 60 node_is_ready topolet-node || die "the kubelet's node is not Ready; see $logs/story-kubelet.log"
  logged kube "$workdir" admin patch node topolet-node --type merge -p '{"spec": {"taints": []}}'
}

node_is_ready() {
  [[ $(kube "$workdir" admin get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null) == True ]]
}

all_are_published() {
  (($(kube "$workdir" admin get "$kTopology" -o name 2>/dev/null | wc -l) == kStoryNodes))
}

build_cluster_story() {
  build_in "$kClusterModule" build -o "$cache/bin/cluster-story" ./cluster-story
  export PATH=$cache/bin:$PATH
}

# What it comes to whether a scheduler knows of zones. Without, some pods must have been denied, or nothing is shown.
compare_denials() {
  local none overreserve
  none=$(story_number none denied_pods) overreserve=$(story_number overreserve denied_pods)
  say "Pods that their node denied: none $none, passthrough $(story_number passthrough denied_pods), overreserve $overreserve"
  check through "story: a scheduler that reserves has 20 times fewer pods denied" 0 test "$none" -gt 0 -a "$((overreserve * 20))" -le "$none"
}

# story_number SCHEDULER FIELD
story_number() { sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" "$logs/story-$1.json" | head -n 1; }
