# shellcheck shell=bash disable=SC2034,SC2154 # workdir, daemon, plugins and logs are shared between the files
# Twenty nodes, one of them real, and pods that come in bursts: how many are denied by their node, with schedulers that
# know less or more of its zones. tests/conformance/cluster/cluster-story plays it.

kStorySchedulers=(none passthrough overreserve extender)
kStoryNodes=20
kExtenderProgram=build/quick/cluster/extender/topolet-extender

run_story() {
  local scheduler
  play_field none
  play_field extender
  for scheduler in "${kStorySchedulers[@]}"; do play_cluster_story "$scheduler" "$scheduler" real; done
  compare_denials
  # A third of the pods takes any zones, and may go where nobody tells of zones; those that want one may not.
  play_cluster_story extender extender-plain simulated --plain-nodes 4 --pods 200
}

# play_cluster_story SCHEDULER NAME real|simulated [OPTION…]: leaves $logs/story-NAME.json. One of the nodes is a real one,
# or all are simulated.
play_cluster_story() {
  local scheduler=$1 name=$2 nodes=$3 options=(--nodes "$kStoryNodes")
  say "Playing a cluster of $kStoryNodes nodes ($name; about five minutes)"
  open_story "$name"
  if [[ $nodes == real ]]; then
    start_runtime "$workdir"
    start_strict_topoletd topolet-node
    start_cluster_kubelet
    start_agent topolet-node
    options=(--nodes $((kStoryNodes - 1)) --real-node topolet-node)
  fi
  if [[ $scheduler == overreserve || $scheduler == extender ]]; then options+=(--must-fit); fi
  check through "story ($name): what is published is what is granted, and what waits fits nowhere" 0 \
    play_story "$scheduler" "$name" "$kStoryNodes" "${options[@]}" "${@:4}"
  if [[ $scheduler == extender ]]; then check_extender_story "$name" "$nodes"; fi
  close_story
}

# play_field SCHEDULER: a pod of 20 CPUs, and nodes of 2 x 10 and of 2 x 20.
play_field() {
  say "Placing pods that fit on one node of two ($1)"
  open_story "field-$1"
  play_story "$1" "field-$1" 2 --case field || true
  if [[ $1 == none ]]; then
    check through "story (field): without zones a pod is bound to a node that has none for it" 0 \
      test "$(story_number "field-$1" first_try)" = 0
  else
    check through "story (field): it is bound to the other one at the first try, 20 times of 20" 0 \
      test "$(story_number "field-$1" first_try)" = 20
  fi
  close_story
}

# open_story NAME: a control plane
open_story() {
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects" "$workdir/story"
  start_control_plane "$workdir" 2>>"$logs/story.log"
  logged kube "$workdir" admin apply -f "$kManifests/crd.yaml"
  check through "story ($1): the kind NodeResourceTopology is there" 20 logged kube "$workdir" admin get "$kTopology"
  make_default_accounts
  build_cluster_story
}

close_story() {
  cp "$workdir"/*.log "$workdir"/story/*.log "$logs" 2>/dev/null || true
  end_program "$workdir" kubelet
  end_program "$workdir" topolet-agent
  stop_control_plane "$workdir"
  close_workdir
}

# play_story SCHEDULER NAME NODES [OPTION…]: leaves $logs/story-NAME.json. Fails if something was wrong.
play_story() {
  local scheduler=$1 name=$2 nodes=$3 options=("${@:4}")
  if [[ $scheduler == extender ]]; then
    make_extender_account
    kExtenderService=127.0.0.1:$(free_port)
    options+=(--scheduler-name topolet --extender "$(realpath "$kExtenderProgram")" --service "$kExtenderService"
      --extender-kubeconfig "$workdir/extender.kubeconfig" --certificates "$workdir/certificates")
  fi
  cluster-story --kubeconfig "$workdir/admin.kubeconfig" --topolet "$PWD/$kCommandProgram" --agent "$PWD/$kAgentProgram" \
    --plugins "$plugins" --directory "$workdir/story" --image "$kStoryImage" \
    --scheduler "$workdir/story/scheduler" "${options[@]}" \
    >"$logs/story-$name.json" 2>>"$logs/story.log" &
  local story=$!
  wait_until 120 are_published "$nodes" || say "not all nodes are published"
  start_scheduler "$workdir" "$scheduler" "$(story_scheduler "$scheduler")"
  cp "$workdir/kube-scheduler-$scheduler.pid" "$workdir/story/scheduler.new"
  mv "$workdir/story/scheduler.new" "$workdir/story/scheduler"
  wait "$story"
}

# topolet-extender has the rights that extender.yaml gives it, and no more, and the only name that may set a zone.
make_extender_account() {
  local name
  for name in rbac policies extender; do logged kube "$workdir" admin apply -f "$kManifests/$name.yaml"; done
  write_token "$workdir" extender "$(kube "$workdir" admin create token topolet-extender --namespace "$kNamespace")"
  "$kManifests/extender-certificates" "$workdir/certificates" "$kNamespace" 127.0.0.1
}

# Prints the file of the scheduler's configuration.
story_scheduler() {
  case $1 in
    none)
      cat >"$workdir/scheduler-none.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: topology-aware}]
YAML
      echo "$workdir/scheduler-none.yaml"
      ;;
    extender)
      extender_scheduler "$kExtenderService" "$workdir/certificates/scheduler" >"$workdir/scheduler-extender.yaml"
      echo "$workdir/scheduler-extender.yaml"
      ;;
    *) echo "$kManifests/scheduler-$1.yaml" ;;
  esac
}

# extender_scheduler ADDRESS DIRECTORY: prints the configuration in scheduler-extender.yaml, for an extender at the
# address and with the certificate in the directory.
extender_scheduler() {
  sed -n '/^  scheduler.yaml: |/,/^---/{s/^    //p}' "$kManifests/scheduler-extender.yaml" |
    sed "s|urlPrefix: .*|urlPrefix: https://$1|; s|/etc/topolet/scheduler-certificates|$2|"
}

# check_extender_story NAME real|simulated: what the extender is for. A real node is held to its audit.
check_extender_story() {
  local name=$1
  check through "story ($name): no pod is denied by its node" 0 test "$(story_number "$name" denied_pods)" = 0
  check through "story ($name): pods are in the zones that were chosen for them" 0 \
    test "$(story_number "$name" wrong_zone)" = 0 -a "$(story_number "$name" right_zone)" -gt 0
  check through "story ($name): the leading replica was killed" 0 test "$(story_number "$name" extenders_killed)" -gt 0
  if [[ $2 == real ]]; then
    check through "story ($name): nor did the real node miss a zone" 0 test 0 = \
      "$(sqlite3 -readonly "$workdir/state-of-topolet/state.db" "SELECT count(*) FROM decided WHERE reason_code = 'zone-missed'")"
  fi
  if [[ $name == extender-plain ]]; then
    check through "story ($name): pods that take any zones are on nodes without" 0 test "$(story_number "$name" on_plain)" -gt 0
  fi
}

# A kubelet with an API server, which keeps one of two CPUs for the system as `topolet config kubelet` would.
start_cluster_kubelet() {
  write_user "$workdir" kubelet system:node:topolet-node system:nodes
  kKubeletConfiguration='systemReserved: {cpu: "1"}' start_kubelet "$workdir/topolet.sock" false none "$logs/story-kubelet.log" \
    --kubeconfig "$workdir/kubelet.kubeconfig"
  wait_until 60 node_is_ready topolet-node || die "the kubelet's node is not Ready; see $logs/story-kubelet.log"
  logged kube "$workdir" admin patch node topolet-node --type merge -p '{"metadata": {"labels": {"topolet.io/pool": "topolet"}},
    "spec": {"taints": [{"key": "topolet.io/pool", "value": "topolet", "effect": "NoSchedule"}]}}'
}

node_is_ready() {
  [[ $(kube "$workdir" admin get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null) == True ]]
}

# are_published NUMBER
are_published() {
  (($(kube "$workdir" admin get "$kTopology" -o name 2>/dev/null | wc -l) == $1))
}

build_cluster_story() {
  build_in "$kClusterModule" build -o "$cache/bin/cluster-story" ./cluster-story
  export PATH=$cache/bin:$PATH
}

# What it comes to whether a scheduler knows of zones. Without, some pods must have been denied, or nothing is shown.
compare_denials() {
  local name none overreserve
  none=$(story_number none denied_pods) overreserve=$(story_number overreserve denied_pods)
  for name in "${kStorySchedulers[@]}"; do
    say "$name: $(story_number "$name" denied_pods) pods denied by their node, $(story_number "$name" wrong_zone) in a wrong zone"
  done
  check through "story: a scheduler that reserves has 20 times fewer pods denied" 0 test "$none" -gt 0 -a "$((overreserve * 20))" -le "$none"
}

# story_number NAME FIELD
story_number() { sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" "$logs/story-$1.json" | head -n 1; }
