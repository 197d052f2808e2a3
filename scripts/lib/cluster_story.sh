# shellcheck shell=bash disable=SC2034,SC2154 # workdir, daemon, plugins and logs are shared between the files
# Twenty nodes, one of them real, and pods that come in bursts: how many are denied by their node, with schedulers that
# know less or more of its zones, on each of kStoryReleases. tests/conformance/cluster/cluster-story plays it.

kStoryReleases=("${kClusterReleases[@]}")
kStoryModule=tests/conformance/cluster
declare -A kStoryWords=([denied]='pods denied though promised' [outside]='containers outside their zone'
  [over_promised]='zones over-promised')
declare -A kCaseNodes=([preemption]=1 [registration]=2)
declare -A kCaseWords=([preemption]='as many are evicted for a pod as it takes, of one zone, and nobody in vain'
  [registration]='a Node that is registered again has its object again, which stays')
kStoryPrograms=(etcd kube-apiserver kube-scheduler kubectl)
kStoryNodes=20
kStoryIsolatedNodes=2 # of them, with topolet-extender
kStoryPods=500
kStoryPlays=()  # those of the story that are played; all, if none is named
kStoryReal=real # or simulated: no node has a kubelet of its own
kExtenderProgram=build/quick/cluster/extender/topolet-extender

run_story() {
  local release
  for release in "${kStoryReleases[@]}"; do
    use_cluster "$release"
    build_cluster "$cache" "${kStoryPrograms[@]}"
    play_release "$release"
  done
  use_cluster "${kClusterReleases[0]}"
}

# The plugin that lets a scheduler read zones by itself is there for one release only.
story_schedulers() {
  if [[ $1 == "${kClusterReleases[0]}" ]]; then echo none passthrough overreserve extender; else echo none extender; fi
}

play_release() {
  local release=$1 scheduler schedulers=()
  for scheduler in none extender; do
    if is_played "field-$scheduler"; then play_field "$scheduler" "$release"; fi
  done
  for scheduler in preemption registration; do
    if is_played "$scheduler"; then play_case "$scheduler" "$release"; fi
  done
  for scheduler in $(story_schedulers "$release"); do
    is_played "$scheduler" || continue
    schedulers+=("$scheduler")
    play_cluster_story "$scheduler" "$release-$scheduler" "$kStoryReal"
  done
  compare_denials "$release" "${schedulers[@]}"
  [[ $release == "${kClusterReleases[0]}" ]] || return 0
  # Containers with CPUs of their own make room for others, and go where they fit better.
  if is_played extender-heal; then play_cluster_story extender "$release-extender-heal" simulated --heal all; fi
  is_played extender-plain || return 0
  # A third of the pods takes any zones, and may go where nobody tells of zones; those that want one may not.
  play_cluster_story extender "$release-extender-plain" simulated --plain-nodes 4 --pods "$((kStoryPods * 2 / 5))"
}

is_played() { ((${#kStoryPlays[@]} == 0)) || [[ " ${kStoryPlays[*]} " == *" $1 "* ]]; }

# play_cluster_story SCHEDULER NAME real|simulated [OPTION…]: leaves $logs/story-NAME.json. One of the nodes is a real one,
# or all are simulated.
play_cluster_story() {
  local scheduler=$1 name=$2 nodes=$3 options=(--nodes "$kStoryNodes" --pods "$kStoryPods" --burst "$((kStoryPods / 10))")
  # Each that is compared is a node that does all again: what a small story publishes is not compared whole.
  options+=(--samples "$((kStoryPods < 400 ? kStoryPods : 400))")
  say "Playing a cluster of $kStoryNodes nodes ($name; about five minutes)"
  open_story "$name"
  if [[ $nodes == real ]]; then
    start_runtime "$workdir"
    start_strict_topoletd topolet-node
    start_cluster_kubelet
    make_agent_account topolet-node
    agent_user=agent start_agent topolet-node
    options+=(--nodes $((kStoryNodes - 1)) --real-node topolet-node)
  fi
  if [[ $scheduler == overreserve || $scheduler == extender ]]; then options+=(--must-fit); fi
  # Others are told one number of a zone that has two.
  if [[ $scheduler == extender ]]; then options+=(--isolated-nodes "$kStoryIsolatedNodes"); fi
  check through "story ($name): what is published is what is granted, and what waits fits nowhere" 0 \
    play_story "$scheduler" "$name" "$kStoryNodes" "${options[@]}" "${@:4}"
  check through "story ($name): no zone is over-promised, but by what the documents name" 0 \
    test "$(story_number "$name" over_promised_unexplained)" = 0
  if [[ $scheduler == extender ]]; then check_extender_story "$name" "$nodes"; fi
  close_story
}

# play_field SCHEDULER RELEASE: a pod of 20 CPUs, and nodes of 4 x 10 and of 2 x 20, with as many CPUs to offer.
play_field() {
  local name=$2-field-$1 number
  say "Placing pods that fit on one node of two ($name)"
  open_story "$name"
  play_story "$1" "$name" 2 --case field || true
  number=$(story_number "$name" first_try)
  if [[ $1 == none ]]; then
    check through "story ($name): without zones some pods are bound to a node that has none for it" 0 test "$number" -lt 20
  else
    check through "story ($name): it is bound to the other one at the first try, 20 times of 20" 0 test "$number" = 20
  fi
  close_story
}

# play_case preemption|registration RELEASE: with topolet-extender.
play_case() {
  local name=$2-$1
  say "Playing what the case $1 is about ($name; about fifteen minutes)"
  open_story "$name"
  check through "story ($name): ${kCaseWords[$1]}" 0 play_story extender "$name" "${kCaseNodes[$1]}" --case "$1" --samples 60
  close_story
}

# open_story NAME: a control plane
open_story() {
  local name
  workdir=$(make_workdir "$$")
  mkdir "$workdir/objects" "$workdir/story"
  start_control_plane "$workdir" 2>>"$logs/story.log"
  # The agents' rights, what narrows them, and their share of the API server are those that are shipped.
  for name in crd rbac policies flowschema; do logged kube "$workdir" admin apply -f "$kManifests/$name.yaml"; done
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
  start_story_scheduler "$scheduler"
  cp "$workdir/kube-scheduler-$scheduler.pid" "$workdir/story/scheduler.new"
  mv "$workdir/story/scheduler.new" "$workdir/story/scheduler"
  wait "$story"
}

# One that asks topolet-extender has the rights and the environment that the manifest gives it.
start_story_scheduler() {
  local configuration assignment
  configuration=$(story_scheduler "$1")
  if [[ $1 == extender ]]; then
    logged kube "$workdir" admin apply -f "$kManifests/scheduler-extender.yaml"
    write_token "$workdir" scheduler "$(kube "$workdir" admin create token topolet-scheduler --namespace "$kNamespace")"
    while read -r assignment; do local -x "${assignment?}"; done < <(extender_scheduler_environment)
    scheduler_user=scheduler start_scheduler "$workdir" "$1" "$configuration"
  else
    start_scheduler "$workdir" "$1" "$configuration"
  fi
}

# topolet-extender has the rights that extender.yaml gives it, and no more, and the only name that may set a zone.
make_extender_account() {
  logged kube "$workdir" admin apply -f "$kManifests/extender.yaml"
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

# Prints NAME=VALUE for each variable that scheduler-extender.yaml sets.
extender_scheduler_environment() {
  sed -n 's/^ *- {name: \(HTTP2_[A-Z_]*\), value: "\([0-9]*\)"}$/\1=\2/p' "$kManifests/scheduler-extender.yaml"
}

# check_extender_story NAME real|simulated: what the extender is for. A real node is held to its audit.
check_extender_story() {
  local name=$1
  check through "story ($name): no pod is denied by its node, but for a device elsewhere or a resize" 0 \
    test "$(story_number "$name" denied_unexplained)" = 0
  check through "story ($name): containers are in the zones that were chosen for them, but for these" 0 \
    test "$(story_number "$name" outside_unexplained)" = 0 -a "$(story_number "$name" right_zone)" -gt 0
  check through "story ($name): the leading replica was killed" 0 test "$(story_number "$name" extenders_killed)" -gt 0
  if [[ $2 == real ]]; then
    check through "story ($name): nor did the real node miss a zone" 0 test 0 = \
      "$(sqlite3 -readonly "$workdir/state-of-topolet/state.db" "SELECT count(*) FROM decided WHERE reason_code = 'zone-missed'")"
  fi
  if [[ $name == *-heal ]]; then
    check through "story ($name): containers were moved meanwhile" 0 test "$(story_number "$name" moved)" -gt 0
  fi
  if [[ $name == *-plain ]]; then
    check through "story ($name): pods that take any zones are on nodes without" 0 test "$(story_number "$name" on_plain)" -gt 0
  fi
}

# make_agent_account NODE: the user agent has the token of a pod like the DaemonSet's, which only sleeps there.
make_agent_account() {
  put agent-pod <<YAML
apiVersion: v1
kind: Pod
metadata: {name: topolet-agent-$1, namespace: $kNamespace}
spec:
  nodeName: $1
  serviceAccountName: topolet-agent
  automountServiceAccountToken: false
  hostNetwork: true
  tolerations: [{operator: Exists}]
  containers:
  - name: agent
    image: $kStoryImage
    imagePullPolicy: Never
    command: [sh, -c, "while :; do sleep 1000; done"]
    resources: {requests: {cpu: 10m, memory: 48Mi}}
YAML
  logged kube "$workdir" admin create -f "$(object agent-pod)"
  write_token "$workdir" agent "$(kube "$workdir" admin create token topolet-agent --namespace "$kNamespace" \
    --bound-object-kind Pod --bound-object-name "topolet-agent-$1" --bound-object-uid \
    "$(kube "$workdir" admin get pod "topolet-agent-$1" --namespace "$kNamespace" -o 'jsonpath={.metadata.uid}')")"
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
  mkdir -p "$cache/bin"
  build_in "$kStoryModule" build -o "$cache/bin/cluster-story" ./cluster-story
  export PATH=$cache/bin:$PATH
}

# compare_denials RELEASE [SCHEDULER…]: what it comes to whether a scheduler knows of zones. Without, some pods must have
# been denied, or nothing is shown.
compare_denials() {
  local release=$1 scheduler none last
  for scheduler in "${@:2}"; do tell_story "$release-$scheduler"; done
  # In a small story perhaps nothing is denied.
  [[ " ${*:2} " == *" none "* ]] && ((kStoryPods >= 500)) || return 0
  none=$(story_number "$release-none" denied_pods)
  for scheduler in "${@:2}"; do
    [[ $scheduler == overreserve || $scheduler == extender ]] || continue
    last=$(story_number "$release-$scheduler" denied_pods)
    check through "story ($release-$scheduler): five times fewer pods denied than without zones" 0 \
      test "$none" -gt 0 -a "$((last * 5))" -le "$none"
  done
}

# tell_story NAME: what was denied, and what was promised and not kept, by cause. The last of each must be 0.
tell_story() {
  local name=$1 what
  say "$name: $(story_number "$name" denied_pods) of $(story_number "$name" pods) pods denied by their node" \
    "($(story_word "$name" denied_for)); $(story_number "$name" compared) of $(story_number "$name" published) objects compared"
  for what in denied outside over_promised; do
    printf '    %-28s %5s for a device, %5s for a resize, %5s for no reason\n' "${kStoryWords[$what]}" \
      "$(story_number "$name" "${what}_by_device")" "$(story_number "$name" "${what}_by_resize")" \
      "$(story_number "$name" "${what}_unexplained")" >&2
  done
  say "$name: zones over-promised while init containers ran: $(story_number "$name" over_promised_by_init)"
}

# story_word NAME FIELD: an object of numbers
story_word() { sed -n "s/.*\"$2\":{\([^}]*\)}.*/\1/p" "$logs/story-$1.json" | tr -d '"'; }

# story_number NAME FIELD
story_number() { sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p" "$logs/story-$1.json" | head -n 1; }
