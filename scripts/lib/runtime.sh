# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# A private containerd. Its root, state, sockets, runc state and cgroups are all kept below one directory's name, so
# that nothing of an existing runtime is touched, and everything can be found again and removed.
#
# WORKDIR/            that directory, made by make_workdir; a short path, since a unix socket's path has at most 108 bytes
#   owner          "PID STARTTIME" of the process that owns the directory
#   containerd.sock, topolet.sock
#   PROGRAM.pid, PROGRAM-NAME.pid   the processes to end
#   other-runtime  if the pods run in an existing runtime: its endpoint
# The pods' cgroups belong below /$(basename WORKDIR).

# Tells whether programs can be run from a directory. Containers need that, and /run and /tmp are often mounted noexec.
is_executable_place() {
  local probe
  probe=$(mktemp "$1/topolet-probe.XXXXXX") || return 1
  printf '#!/bin/sh\n' >"$probe"
  chmod 700 "$probe"
  "$probe" 2>/dev/null
  local answer=$?
  rm -f "$probe"
  return "$answer"
}

workdir_parent() {
  local place
  for place in /tmp /var/tmp /run; do
    if [[ -d $place ]] && is_executable_place "$place"; then
      echo "$place"
      return
    fi
  done
  die "no program can be run from /tmp, /var/tmp or /run: are they all mounted noexec? Remount one of them with exec"
}

# Prints "PID STARTTIME"; the start time distinguishes a process from a later one with the same PID. A zombie counts as
# dead.
process_mark() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a fields <<<"${stat##*) }"
  [[ ${fields[0]} != Z ]] || return 1
  echo "$1 ${fields[19]}"
}

# make_workdir OWNER_PID: makes the directory and prints its name.
make_workdir() {
  local workdir
  workdir=$(mktemp -d "$(workdir_parent)/topolet.XXXXXX")
  process_mark "$1" >"$workdir/owner"
  echo "$workdir"
}

# Removes what earlier runs left behind when they were killed.
sweep_workdirs() {
  local workdir mark
  for workdir in {/tmp,/var/tmp,/run}/topolet.??????; do
    [[ -d $workdir && ! -L $workdir && -O $workdir && -f $workdir/owner ]] || continue
    mark=$(<"$workdir/owner")
    if [[ $(process_mark "${mark%% *}") != "$mark" ]]; then
      say "Removing what an earlier run left in $workdir"
      remove_workdir "$workdir"
    fi
  done
}

choose_snapshotter() {
  local probe=$1/overlay-probe answer=native
  mkdir -p "$probe/"{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged" 2>/dev/null; then
    umount "$probe/merged"
    answer=overlayfs
  fi
  rm -rf "$probe"
  echo "$answer"
}

write_runtime_config() {
  local workdir=$1 snapshotter=$2
  cat >"$workdir/containerd.toml" <<TOML
version = 2
root = "$workdir/root"
state = "$workdir/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "$workdir/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "$workdir/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$kPauseImage"
  # Otherwise runc fails where this process may not lower its OOM score.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$workdir/cni/bin"
    conf_dir = "$workdir/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    Root = "$workdir/runc"
    SystemdCgroup = false
TOML
}

# start_runtime WORKDIR: starts containerd on WORKDIR/containerd.sock, with the images that tests and demonstration need.
start_runtime() {
  local workdir=$1
  ((EUID == 0)) || die "starting a container runtime needs root"
  lend_files "$workdir"
  write_runtime_config "$workdir" "$(choose_snapshotter "$workdir")"
  mkdir -p "$workdir/tmp"
  begin_runtime "$workdir"
  make_image "$workdir/image.tar" "$kPauseImage" "$kStoryImage"
  import_image "$workdir/containerd.sock" "$workdir/image.tar" "$kPauseImage" "$kStoryImage"
}

# begin_runtime WORKDIR: starts its containerd, for the first time or again, with all that it had.
begin_runtime() {
  local workdir=$1
  # In a session of its own, so that Ctrl-C reaches only the script that started it.
  TMPDIR=$workdir/tmp setsid containerd --config "$workdir/containerd.toml" >>"$workdir/containerd.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/containerd.pid"
  if ! wait_until 120 runtime_answers "$workdir" || ! kill -0 "$!" 2>/dev/null; then
    tail -n 20 "$workdir/containerd.log" >&2
    die "containerd did not start; the end of its log is above"
  fi
}

# A pod in the host's network gets copies of these files, which a minimal machine does not have. If they are missing,
# they are made, and removed together with it.
lend_files() {
  local file
  for file in /etc/hosts /etc/resolv.conf; do
    if [[ ! -e $file ]]; then
      echo "$file" >>"$1/lent"
      printf '# lent by topolet\n' >"$file"
    fi
  done
}

take_back_files() {
  local file
  [[ -f $1/lent ]] || return 0
  while read -r file; do
    if [[ $(cat "$file" 2>/dev/null) == "# lent by topolet" ]]; then rm -f "$file"; fi
  done <"$1/lent"
}

runtime_answers() {
  ctr --address "$1/containerd.sock" version >/dev/null 2>&1 || ! kill -0 "$(<"$1/containerd.pid")" 2>/dev/null
}

# end_process PID COMMAND: sends SIGTERM, then SIGKILL, but only if PID still runs that command.
end_process() {
  local pid=$1 command=$2
  runs_command "$pid" "$command" || return 0
  kill "$pid" 2>/dev/null || true
  wait_until 5 is_gone "$pid" "$command" || kill -KILL "$pid" 2>/dev/null || true
}

# The kernel keeps only 15 characters of a command's name.
runs_command() { [[ $(cat "/proc/$1/comm" 2>/dev/null) == "${2:0:15}" ]]; }

is_gone() { ! process_mark "$1" >/dev/null || ! runs_command "$1" "$2"; }

# Containers are removed before their shims, which reap them.
remove_containers() {
  local workdir=$1 root id address
  local deletions=()
  # containerd, CRI-O and Docker keep them in different places.
  for root in "$workdir"/runc/k8s.io "$workdir"/runc "$workdir"/docker/run/*/moby; do
    [[ -d $root ]] || continue
    for id in $(runc --root "$root" list --quiet 2>/dev/null); do
      runc --root "$root" delete --force "$id" >/dev/null 2>&1 &
      deletions+=("$!")
    done
  done
  ((${#deletions[@]} == 0)) || wait "${deletions[@]}" || true
  for address in "$workdir"/state/io.containerd.runtime.v2.task/k8s.io/*/address; do
    if [[ -f $address ]]; then rm -f "$(sed 's|^unix://||' "$address")"; fi
  done
}

end_shims() {
  local cmdline pid
  grep -lsF -- "$1/" /proc/[0-9]*/cmdline | while read -r cmdline; do
    pid=${cmdline//[^0-9]/}
    if runs_command "$pid" containerd-shim-runc-v2 || runs_command "$pid" conmon; then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done || true
}

unmount_below() {
  local target
  awk -v workdir="$1/" 'index($5, workdir) == 1 {print $5}' /proc/self/mountinfo | sort -r | while read -r target; do
    umount "$target" 2>/dev/null || umount -l "$target" 2>/dev/null || true
  done
}

remove_cgroups() {
  local name=$1 top
  for top in /sys/fs/cgroup/"$name" /sys/fs/cgroup/*/"$name"; do
    if [[ -d $top ]]; then wait_until 5 remove_cgroup "$top" || say "Could not remove the cgroup $top"; fi
  done
}

remove_cgroup() {
  find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
  [[ ! -d $1 ]]
}

# enter_runtime WORKDIR ENDPOINT: imports the image into an existing runtime.
enter_runtime() {
  local workdir=$1 endpoint=$2 address=${2#unix://}
  [[ -S $address ]] || die "there is no socket at $address; is the runtime running?"
  echo "$endpoint" >"$workdir/other-runtime"
  if ! ctr --address "$address" version >/dev/null 2>&1; then
    say "$endpoint is not a containerd: it must have the image $kStoryImage (scripts/private-runtime image FILE makes it)"
    return
  fi
  if has_image "$address" "$kStoryImage"; then return; fi
  echo "$kStoryImage" >"$workdir/imported"
  make_image "$workdir/image.tar" "$kStoryImage"
  import_image "$address" "$workdir/image.tar" "$kStoryImage"
}

# leave_runtime WORKDIR ENDPOINT: removes our pods and our image from it again.
leave_runtime() {
  local workdir=$1 endpoint=$2
  if [[ -x $kStoryProgram ]]; then
    "$kStoryProgram" --socket "$endpoint" --owner "${workdir##*/}" --sweep >&2 || say "Some pods of $workdir are left in $endpoint"
  fi
  if [[ -f $workdir/imported ]]; then
    ctr --address "${endpoint#unix://}" --namespace k8s.io images rm "$(<"$workdir/imported")" >/dev/null 2>&1 || true
  fi
  if [[ -d /run/systemd/system ]]; then systemctl --quiet stop "${workdir##*/}.slice" 2>/dev/null || true; fi
}

# remove_workdir WORKDIR: ends everything that runs there and removes every trace, even if it was only half set up.
remove_workdir() {
  local workdir=$1
  [[ $workdir == */topolet.?????? && -d $workdir ]] || return 0
  local program pid_file
  for program in kubelet registry nri-plugin nri_echo_plugin topolet-extender topolet-agent topoletd qemu-system-x86_64 kube-scheduler kube-apiserver etcd crio cri-dockerd dockerd; do
    for pid_file in "$workdir/$program"{,-*}.pid; do
      if [[ -f $pid_file ]]; then end_process "$(<"$pid_file")" "$program"; fi
    done
  done
  if [[ -f $workdir/other-runtime ]]; then leave_runtime "$workdir" "$(<"$workdir/other-runtime")"; fi
  if [[ -f $workdir/containerd.pid ]]; then end_process "$(<"$workdir/containerd.pid")" containerd; fi
  pid_file=$workdir/docker/run/containerd/containerd.pid
  if [[ -f $pid_file ]]; then end_process "$(<"$pid_file")" containerd; fi
  if command -v runc >/dev/null; then remove_containers "$workdir"; fi
  end_shims "$workdir"
  take_back_files "$workdir"
  unmount_below "$workdir"
  remove_cgroups "${workdir##*/}"
  rm -rf --one-file-system "$workdir"
  # Shims always put their sockets here. If the machine has a containerd of its own, the directory is not empty.
  rmdir /run/containerd/s /run/containerd 2>/dev/null || true
}
