# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# A kubelet without an API server: its pods are files in a directory.

kTrader="trader-topolet-node"
kWeb="web-topolet-node"
# The kubelet creates these directories at fixed paths; those that did not exist before are removed again.
kKubeletPlaces=(/var/lib/kubelet /var/log/containers)

take_back_kubelet_places() {
  local place
  for place in "${kKubeletPlaces[@]}"; do
    if [[ -f $results/made-kubelet-places ]] && grep -qx "$place" "$results/made-kubelet-places"; then
      rm -rf --one-file-system "$place"
    fi
  done
}

note_kubelet_places() {
  local place
  [[ ! -f $results/made-kubelet-places ]] || return 0
  : >"$results/made-kubelet-places"
  for place in "${kKubeletPlaces[@]}"; do
    if [[ ! -e $place ]]; then echo "$place" >>"$results/made-kubelet-places"; fi
  done
}

# start_kubelet SOCKET EVENTED POLICY LOG [OPTION…]: also with the lines of kKubeletConfiguration, if there are any.
start_kubelet() {
  local socket=$1 evented=$2 policy=$3 log=$4
  note_kubelet_places
  make_pods_cgroup
  mkdir -p "$workdir/manifests" "$workdir/kubelet" "$workdir/podlogs"
  cat >"$workdir/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: $workdir/manifests
fileCheckFrequency: 1s
syncFrequency: 10s
containerRuntimeEndpoint: unix://$socket
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /${workdir##*/}
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: 127.0.0.1
port: 20250
healthzPort: 0
podLogsDir: $workdir/podlogs
makeIPTablesUtilChains: false
evictionHard: {memory.available: 1Mi}
cpuManagerPolicy: $policy
cpuManagerReconcilePeriod: 5s
featureGates: {EventedPLEG: $evented}
YAML
  # The static policy requires that some CPU is reserved, and rounds it up to a whole one.
  if [[ $policy == static ]]; then echo 'kubeReserved: {cpu: 500m}' >>"$workdir/kubelet.yaml"; fi
  echo "${kKubeletConfiguration-}" >>"$workdir/kubelet.yaml"
  : >"$log"
  setsid kubelet --config "$workdir/kubelet.yaml" --root-dir "$workdir/kubelet" --cert-dir "$workdir/kubelet/pki" \
    --hostname-override topolet-node -v=2 "${@:5}" >>"$log" 2>&1 </dev/null &
  echo "$!" >"$workdir/kubelet.pid"
  disown
  wait_until 60 grep -q 'Started kubelet' "$log" || die "the kubelet did not start; see its log, $log"
}

# The kubelet expects the root of its cgroups to exist. With cgroup v1, a new cpuset is empty and has to be filled.
make_pods_cgroup() {
  local top name=${workdir##*/}
  if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
    mkdir -p "/sys/fs/cgroup/$name"
    return
  fi
  for top in /sys/fs/cgroup/*/; do
    if [[ ! -f $top/cgroup.controllers && ! -L ${top%/} ]]; then mkdir -p "$top$name"; fi
  done
  cat /sys/fs/cgroup/cpuset/cpuset.mems >"/sys/fs/cgroup/cpuset/$name/cpuset.mems"
  cat /sys/fs/cgroup/cpuset/cpuset.cpus >"/sys/fs/cgroup/cpuset/$name/cpuset.cpus"
}

# write_pod NAME REQUESTS LIMITS
write_pod() {
  cat >"$workdir/$1.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${kPodImage:-$kBusyboxImage}
    imagePullPolicy: Never
    command: [sh, -c, "echo begun; trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
    livenessProbe: {periodSeconds: 1, exec: {command: [touch, /tmp/probed]}}
    resources: {requests: {$2}, limits: {$3}}
YAML
  mv "$workdir/$1.yaml" "$workdir/manifests/$1.yaml"
}

# process_of POD: prints the PID of the pod's running container.
process_of() {
  local id
  if [[ -n ${runtime-} ]]; then
    process_in_runtime "$1"
    return
  fi
  for id in $(ctr --address "$workdir/containerd.sock" --namespace k8s.io containers list --quiet \
    "labels.\"io.kubernetes.pod.name\"==$1,labels.\"io.cri-containerd.kind\"==container" 2>/dev/null); do
    ctr --address "$workdir/containerd.sock" --namespace k8s.io tasks list 2>/dev/null |
      awk -v id="$id" '$1 == id && $3 == "RUNNING" { print $2 }'
  done
}

# asks METHOD PATH TEXT: whether the kubelet's own server answers with TEXT. It gets exec, logs and stats from the CRI.
asks() { curl --silent --insecure --max-time 10 --request "$1" "https://127.0.0.1:20250$2" | grep -q -- "$3"; }

runs() { [[ -n $(process_of "$1") ]]; }
runs_anew() {
  local process
  process=$(process_of "$1")
  [[ -n $process && $process != "$2" ]]
}
runs_none() { ! runs "$kTrader" && ! runs "$kWeb"; }
cpus_of() { awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$(process_of "$1")/status" 2>/dev/null; }

# placed POD: prints "MODE CPUS" as topolet recorded them.
placed() { sqlite3 -readonly -separator ' ' "$workdir/state-of-topolet/state.db" "SELECT mode, cpus FROM current_placements WHERE pod = '$1'"; }
agrees() { [[ $(placed "$1") == "$2 $(cpus_of "$1")" ]]; }
holds_none() { [[ -z $(sqlite3 -readonly "$workdir/state-of-topolet/state.db" 'SELECT pod FROM current_placements') ]]; }

# check WAY TEST SECONDS COMMAND… : records whether the command succeeds within SECONDS.
check() {
  local way=$1 test=$2 seconds=$3 begin=$SECONDS
  shift 3
  if wait_until "$seconds" "$@"; then note "$way" "$test" PASS; else
    note "$way" "$test" FAIL
    say "$test ($way): did not succeed within $((SECONDS - begin)) s: $*"
  fi
}

# complaints LOG: the errors that the kubelet logged, by source file and message, without times, numbers and names.
# Leaves out what depends on timing: a probe that runs while its container is killed, and statistics requested too
# early.
complaints() {
  sed -n 's/^[EF][0-9]* [0-9:.]* *[0-9]* \([a-z_]*\.go\):[0-9]*\] "\([^"]*\)".*/\1: \2/p' "$1" |
    grep -v -e 'ExecSync cmd from runtime service failed' -e 'Image garbage collection failed once' | sort -u
}

run_kubelet() {
  local way
  for way in direct through; do
    kubelet_story "$way" 'kubelet' false none
    kubelet_story "$way" 'kubelet, events' true none
    kubelet_story "$way" 'kubelet, static CPUs' false static
  done
}

# kubelet_story WAY NAME EVENTED POLICY
kubelet_story() {
  local way=$1 name=$2 evented=$3 policy=$4 log process
  log="$logs/$name-$way.log"
  say "Running a kubelet ($name, $way)"
  open_workdir
  if [[ $way == through ]]; then start_topoletd; fi
  start_kubelet "$(socket_of "$way")" "$evented" "$policy" "$log"
  write_pod trader 'cpu: "1", memory: 64Mi' 'cpu: "1", memory: 64Mi'
  write_pod web 'cpu: 100m, memory: 32Mi' 'memory: 64Mi'
  check "$way" "$name: a Guaranteed pod runs" 30 runs "$kTrader"
  check "$way" "$name: a Burstable pod runs" 30 runs "$kWeb"
  if [[ $policy == static ]]; then
    check "$way" "$name: its CPUs are the kubelet's choice" 20 has_kubelets_cpus
  fi
  check "$way" "$name: a command runs in it" 10 asks POST "/run/default/$kWeb/main?cmd=echo+said" said
  check "$way" "$name: its probe runs in it" 10 asks POST "/run/default/$kWeb/main?cmd=ls+/tmp" probed
  check "$way" "$name: its log can be read" 10 asks GET "/containerLogs/default/$kWeb/main" begun
  check "$way" "$name: it has statistics" 30 asks GET /stats/summary "$kWeb"
  if [[ $way == through ]]; then check_placements "$name"; fi
  process=$(process_of "$kTrader")
  kill -KILL "$process" || true
  check "$way" "$name: a killed container is restarted" 8 runs_anew "$kTrader" "$process"
  wait_until 30 runs_anew "$kTrader" "$process" || true
  complaints "$log" >"$results/complaints-$name-$way"
  if [[ $way == through ]]; then
    check_placements "$name, restarted"
    check_new_complaints "$name"
    check_killed_topoletd "$name"
  fi
  check_killed_runtime "$way" "$name"
  rm "$workdir/manifests/"*
  check "$way" "$name: containers go with their files" 30 runs_none
  if [[ $way == through ]]; then check through "$name: all CPUs come back" 10 holds_none; fi
  end_process "$(<"$workdir/kubelet.pid")" kubelet
  close_workdir
}

# containerd is killed and comes back; its containers keep running.
check_killed_runtime() {
  local way=$1 name=$2 trader web
  trader=$(process_of "$kTrader") web=$(process_of "$kWeb")
  kill -KILL "$(<"$workdir/containerd.pid")"
  kill -KILL "$web" || true
  TMPDIR=$workdir/tmp setsid containerd --config "$workdir/containerd.toml" >>"$workdir/containerd.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/containerd.pid"
  disown
  check "$way" "$name: containerd killed: what ended meanwhile is restarted" 60 runs_anew "$kWeb" "$web"
  check "$way" "$name: containerd killed: the other container is not touched" 0 test "$trader" = "$(process_of "$kTrader")"
}

has_kubelets_cpus() {
  local checkpoint=$workdir/kubelet/cpu_manager_state
  grep -q "\"main\":\"$(cpus_of "$kTrader")\"" "$checkpoint" &&
    grep -q "\"defaultCpuSet\":\"$(cpus_of "$kWeb")\"" "$checkpoint"
}

check_placements() {
  check through "$1: the Guaranteed one is alone, as the ledger says" 20 agrees "$kTrader" exclusive
  check through "$1: the Burstable one shares, as the ledger says" 20 agrees "$kWeb" shared
}

check_new_complaints() {
  local new
  new=$(comm -13 <(sort -u "$results"/complaints-*-direct) "$results/complaints-$1-through")
  check through "$1: the kubelet complains of nothing new" 0 test -z "$new"
  if [[ -n $new ]]; then say "new in the kubelet's log: $new"; fi
}

# The kubelet must recover, and a container that ended in the meantime must be restarted.
check_killed_topoletd() {
  local process trader
  process=$(process_of "$kWeb") trader=$(process_of "$kTrader")
  kill -KILL "$(<"$workdir/topoletd.pid")"
  kill -KILL "$process" || true
  mv "$workdir/topoletd.log" "$workdir/topoletd-killed.log"
  start_topoletd
  check through "$1: topoletd killed: the other container is not touched" 0 test "$trader" = "$(process_of "$kTrader")"
  check through "$1: topoletd killed: what ended meanwhile is restarted" 40 runs_anew "$kWeb" "$process"
  check_placements "$1, topoletd killed"
}
