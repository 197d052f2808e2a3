# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# Tests of topolet with containers of CRI-O and of Docker: by hand through the CRI, and with a kubelet.

# open_other_workdir RUNTIME: as open_workdir, with that runtime.
open_other_workdir() {
  runtime=$1
  workdir=$(make_workdir "$$")
  make_busybox_image "$workdir/busybox.tar" "$kBusyboxImage"
  setsid registry --archive "$workdir/busybox.tar" --address-file "$workdir/registry.address" >>"$logs/registry.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/registry.pid"
  disown
  wait_until 10 test -s "$workdir/registry.address" || die "the registry did not start; see $logs/registry.log"
  registry=$(<"$workdir/registry.address")
  kPauseImage=$registry/pause:1
  image=$registry/busybox:1
  lend_files "$workdir"
  mkdir -p "$workdir/logs" "$workdir/tmp"
  "start_$runtime"
  in_runtime direct pull "$image"
  make_pods_cgroup
}

# in_runtime WAY COMMAND…: of the program container.
in_runtime() {
  local way=$1
  shift
  container -socket "$(socket_of "$way")" -image "$image" -cgroups "/${workdir##*/}" -logs "$workdir/logs" "$@"
}

process_in_runtime() { in_runtime direct process "$1" 2>/dev/null; }

# known POD: prints what topolet knows of what it asks for: "QOS MILLI CERTAINTY".
known() {
  sqlite3 -readonly -separator ' ' "$workdir/state-of-topolet/state.db" \
    "SELECT qos, cpu_request_milli, cpu_request_certainty FROM allocation WHERE pod_name = '$1'"
}
is_known_as() { [[ $(known "$1") == "$2" ]]; }
# Their CPUs, in the ledger and in the kernel, are the same.
sits() { [[ $(placed "$1") == "$2 $(cpus_in_runtime "$1")" ]]; }
cpus_in_runtime() { awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$(process_in_runtime "$1")/status" 2>/dev/null; }
drifts() { sqlite3 -readonly "$workdir/state-of-topolet/state.db" "SELECT count(*) FROM decided WHERE event = 'drift'"; }
has_no_drift() { [[ $(drifts) == 0 ]]; }
has_shares() { grep -qx "$2" "$(cpu_cgroup_of "$1")/cpu.shares" 2>/dev/null || [[ -f $(cpu_cgroup_of "$1")/cpu.weight ]]; }
cpu_cgroup_of() {
  local cgroup
  cgroup=$(awk -F: '$2 ~ /^cpu(,|$)/ || $2 == "" { print $3; exit }' "/proc/$(process_in_runtime "$1")/cgroup")
  [[ -f /sys/fs/cgroup/cgroup.controllers ]] && echo "/sys/fs/cgroup$cgroup" || echo "/sys/fs/cgroup/cpu$cgroup"
}
ends_without() { [[ -z $(placed "$1") ]]; }
apart() { [[ $(cpus_in_runtime web) != *"$(cpus_in_runtime trader)"* ]]; }

kill_topoletd() {
  local process
  process=$(<"$workdir/topoletd.pid")
  kill -KILL "$process"
  # On a busy machine its children still hold its locks for a while.
  wait_until 10 flock -n "$workdir/control.sock.lock" true || true
  mv "$workdir/topoletd.log" "$workdir/topoletd-$((++kills)).log"
}

run_crio() { other_runtime_story crio; }
run_docker() { other_runtime_story docker; }

# other_runtime_story RUNTIME
other_runtime_story() {
  local name=$1 web trader once kills=0
  say "Placing containers of $name"
  open_other_workdir "$name"
  start_topoletd
  web=$(in_runtime through run web burstable 500 0) || true
  in_runtime through run idle besteffort 0 0 >/dev/null || true
  check through "$name: a Burstable container shares, as the ledger says" 10 sits web shared
  trader=$(in_runtime through run trader guaranteed 1000 1000) || true
  check through "$name: the neighbours have left before a Guaranteed one runs" 0 apart
  check through "$name: it is alone, as the ledger says" 10 sits trader exclusive
  in_runtime through resize "$web" 700 0 || true
  check through "$name: a resize is known" 10 is_known_as web 'burstable 700 told'
  check through "$name: a resize is in the kernel" 10 has_shares web 716
  check through "$name: and leaves its CPUs" 0 sits web shared
  check_restarts "$name"
  check_adoption "$name"
  check_exits "$name" "$trader"
  for pod in web idle trader past; do in_runtime through remove "$pod" || true; done
  check through "$name: all CPUs come back" 20 holds_none
  close_workdir
  other_kubelet_story "$name"
}

check_restarts() {
  local name=$1 process
  process=$(process_in_runtime trader)
  kill_topoletd
  start_topoletd
  check through "$name: topoletd killed: the container is not touched" 0 test "$process" = "$(process_in_runtime trader)"
  check through "$name: topoletd killed: it is alone as before" 10 sits trader exclusive
  check through "$name: topoletd killed: the other shares as before" 10 sits web shared
  "kill_$runtime"
  check through "$name: the runtime killed: the container is not touched" 60 same_process trader "$process"
  check through "$name: the runtime killed: it is alone as before" 30 sits trader exclusive
  kill_topoletd
  start_topoletd
  check through "$name: the runtime and topoletd killed: the other shares as before" 10 sits web shared
  # A difference would be found by the first comparison, which is over.
  check through "$name: restarts are no drift" 0 has_no_drift
}

same_process() { [[ $(process_in_runtime "$1") == "$2" ]]; }

# topoletd loses its database: what it knows is what it can read.
check_adoption() {
  local name=$1
  kill_topoletd
  rm -rf "$workdir/state-of-topolet"
  start_topoletd
  check through "$name: adopted: a Guaranteed container keeps its CPUs" 10 sits trader exclusive
  check through "$name: adopted: what it asks for is known" 0 is_known_as trader 'guaranteed 1000 told'
  check through "$name: adopted: a Burstable one shares" 10 sits web shared
  check through "$name: adopted: what that asks for is known" 0 is_known_roughly web burstable 700
  check through "$name: adopted: a BestEffort one asks for nothing" 0 is_known_as idle 'besteffort 0 told'
  in_runtime direct run past burstable 300 0 >/dev/null || true
  check through "$name: a container made past topolet is adopted" 30 is_known_roughly past burstable 300
  check through "$name: and leaves the CPUs of others" 10 sits past shared
  check through "$name: adoption is no drift" 0 has_no_drift
}

# cgroup v2 has no shares: the request is at most what is known.
is_known_roughly() {
  local qos milli certainty
  read -r qos milli certainty < <(known "$1")
  [[ $qos == "$2" && ($certainty == told && $milli == "$3" || $certainty == estimated && $milli -ge $3) ]]
}

check_exits() {
  local name=$1 trader=$2
  in_runtime through stop "$trader" || true
  check through "$name: a stopped container holds nothing" 20 ends_without trader
  kill -KILL "$(process_in_runtime idle)" || true
  check through "$name: nor does one that was killed" 20 ends_without idle
  check through "$name: its neighbours have all CPUs again" 20 sits web shared
}

kill_crio() {
  kill -KILL "$(<"$workdir/crio.pid")"
  rm -f "$workdir/containerd.sock"
  begin_crio
}

kill_docker() {
  local containerd=$workdir/docker/run/containerd
  # dockerd would wait for a containerd that ended with it.
  kill -KILL "$(<"$workdir/cri-dockerd.pid")" "$(<"$workdir/dockerd.pid")" "$(<"$containerd/containerd.pid")" || true
  rm -f "$workdir/containerd.sock" "$workdir/docker/dockerd-itself.pid" "$containerd"/containerd.{pid,sock}
  mv "$workdir/dockerd.log" "$workdir/dockerd-killed.log"
  begin_dockerd
  begin_cri_dockerd
}

# other_kubelet_story RUNTIME
other_kubelet_story() {
  local name="kubelet on $1" log="$logs/kubelet-on-$1.log" kPodImage process kills=0
  say "Running a kubelet ($1)"
  open_other_workdir "$1"
  kPodImage=$image
  start_topoletd
  start_kubelet "$(socket_of through)" false none "$log"
  write_pod trader 'cpu: "1", memory: 64Mi' 'cpu: "1", memory: 64Mi'
  write_pod web 'cpu: 100m, memory: 32Mi' 'memory: 64Mi'
  check through "$name: a Guaranteed pod runs" 60 runs "$kTrader"
  check through "$name: a Burstable pod runs" 60 runs "$kWeb"
  check_placements "$name"
  check through "$name: a command runs in it" 10 asks POST "/run/default/$kWeb/main?cmd=echo+said" said
  check through "$name: its log can be read" 10 asks GET "/containerLogs/default/$kWeb/main" begun
  process=$(process_of "$kTrader")
  kill -KILL "$process" || true
  check through "$name: a killed container is restarted" 30 runs_anew "$kTrader" "$process"
  check_placements "$name, restarted"
  check_killed_topoletd "$name"
  kill_topoletd
  rm -rf "$workdir/state-of-topolet"
  start_topoletd
  check_placements "$name, adopted"
  check through "$name: adopted: what they ask for is known" 0 is_known_as "$kTrader" 'guaranteed 1000 told'
  check through "$name: restarts are no drift" 0 has_no_drift
  rm "$workdir/manifests/"*
  check through "$name: containers go with their files" 60 runs_none
  check through "$name: all CPUs come back" 20 holds_none
  end_process "$(<"$workdir/kubelet.pid")" kubelet
  close_workdir
}
