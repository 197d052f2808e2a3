# shellcheck shell=bash
# A containerd of our own: its root, state, sockets, runc state and cgroups all live below one directory's name, so
# that nothing of an existing runtime is touched and everything can be found again and removed.
#
# ROOM/            short, since a unix socket's path has 108 bytes at most; made by make_room
#   owner          "PID STARTTIME" of the process it belongs to
#   containerd.sock
# The pods belong below the cgroup /$(basename ROOM).

# Whether programs may run from a directory: containers do, and /run and /tmp are often mounted noexec.
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

rooms_place() {
  local place
  for place in /tmp /var/tmp /run; do
    if [[ -d $place ]] && is_executable_place "$place"; then
      echo "$place"
      return
    fi
  done
  die "no program can run from /tmp, /var/tmp or /run (all mounted noexec?)"
}

# The start time tells a process from a later one with the same PID.
process_mark() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a fields <<<"${stat##*) }"
  echo "$1 ${fields[19]}"
}

# make_room OWNER_PID: prints the directory's name.
make_room() {
  local room
  room=$(mktemp -d "$(rooms_place)/topolet.XXXXXX")
  process_mark "$1" >"$room/owner"
  echo "$room"
}

# Removes what runs that were killed have left behind.
sweep_rooms() {
  local room mark
  for room in {/tmp,/var/tmp,/run}/topolet.??????; do
    [[ -d $room && ! -L $room && -O $room && -f $room/owner ]] || continue
    mark=$(<"$room/owner")
    if [[ $(process_mark "${mark%% *}") != "$mark" ]]; then
      say "Removing what an earlier run left in $room"
      remove_room "$room"
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
  local room=$1 snapshotter=$2
  cat >"$room/containerd.toml" <<TOML
version = 2
root = "$room/root"
state = "$room/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "$room/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "$room/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$kPauseImage"
  # Without it runc fails where the score of this process may not be lowered.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$room/cni/bin"
    conf_dir = "$room/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    Root = "$room/runc"
    SystemdCgroup = false
TOML
}

# start_runtime ROOM: containerd on ROOM/containerd.sock with the images the tests and the story need.
start_runtime() {
  local room=$1 snapshotter
  ((EUID == 0)) || die "a container runtime needs root"
  snapshotter=$(choose_snapshotter "$room")
  write_runtime_config "$room" "$snapshotter"
  mkdir -p "$room/tmp"
  # A session of its own, so that Ctrl-C reaches only who started it.
  TMPDIR=$room/tmp setsid containerd --config "$room/containerd.toml" >"$room/containerd.log" 2>&1 </dev/null &
  echo "$!" >"$room/containerd.pid"
  if ! wait_until 30 runtime_answers "$room" || ! kill -0 "$!" 2>/dev/null; then
    tail -n 20 "$room/containerd.log" >&2
    die "containerd did not start; the end of its log is above"
  fi
  make_image "$room/image.tar" "$kPauseImage" "$kStoryImage"
  import_image "$room/containerd.sock" "$snapshotter" "$room/image.tar" "$kPauseImage" "$kStoryImage"
}

runtime_answers() {
  ctr --address "$1/containerd.sock" version >/dev/null 2>&1 || ! kill -0 "$(<"$1/containerd.pid")" 2>/dev/null
}

# end_process PID COMMAND: asks, then insists; only if that PID still is that command.
end_process() {
  local pid=$1 command=$2
  runs_command "$pid" "$command" || return 0
  kill "$pid" 2>/dev/null || true
  wait_until 5 is_gone "$pid" "$command" || kill -KILL "$pid" 2>/dev/null || true
}

# The kernel keeps 15 characters of a command's name.
runs_command() { [[ $(cat "/proc/$1/comm" 2>/dev/null) == "${2:0:15}" ]]; }

is_gone() {
  ! runs_command "$1" "$2" || [[ $(cat "/proc/$1/stat" 2>/dev/null) == *") Z "* ]]
}

# Containers go before their shims, which reap them.
remove_containers() {
  local room=$1 id address
  for id in $(runc --root "$room/runc/k8s.io" list --quiet 2>/dev/null); do
    runc --root "$room/runc/k8s.io" delete --force "$id" >/dev/null 2>&1 &
  done
  wait
  for address in "$room"/state/io.containerd.runtime.v2.task/k8s.io/*/address; do
    if [[ -f $address ]]; then rm -f "$(sed 's|^unix://||' "$address")"; fi
  done
}

end_shims() {
  local cmdline pid
  for cmdline in $(grep -lsF -- "$1/containerd.sock" /proc/[0-9]*/cmdline); do
    pid=${cmdline//[^0-9]/}
    if runs_command "$pid" containerd-shim-runc-v2; then kill -KILL "$pid" 2>/dev/null || true; fi
  done
}

unmount_below() {
  local target
  awk -v room="$1/" 'index($5, room) == 1 {print $5}' /proc/self/mountinfo | sort -r | while read -r target; do
    umount "$target" 2>/dev/null || umount -l "$target" 2>/dev/null || true
  done
}

remove_cgroups() {
  local name=$1 top
  for top in /sys/fs/cgroup/"$name" /sys/fs/cgroup/*/"$name"; do
    if [[ -d $top ]]; then wait_until 5 remove_cgroup "$top" || say "the cgroup $top could not be removed"; fi
  done
}

remove_cgroup() {
  find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
  [[ ! -d $1 ]]
}

# remove_room ROOM: ends everything that runs there and removes every trace; works for a half-made one too.
remove_room() {
  local room=$1 file
  [[ $room == */topolet.?????? && -d $room ]] || return 0
  for file in containerd topoletd; do
    if [[ -f $room/$file.pid ]]; then end_process "$(<"$room/$file.pid")" "$file"; fi
  done
  if command -v runc >/dev/null; then remove_containers "$room"; fi
  end_shims "$room"
  unmount_below "$room"
  remove_cgroups "${room##*/}"
  rm -rf --one-file-system "$room"
  # Shims insist on this place for their sockets; a containerd of the machine keeps more than that in it.
  rmdir /run/containerd/s /run/containerd 2>/dev/null || true
}
