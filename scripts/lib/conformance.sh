# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# A current containerd with its own tests, and how the same tests run directly and through topolet.

kContainerdModule=github.com/containerd/containerd/v2
kContainerdVersion=v2.4.2
kContainerdTags='no_btrfs no_devmapper no_zfs'
kContainerdPrograms=(./cmd/containerd ./cmd/containerd-shim-runc-v2 ./cmd/ctr)
kCniModule=github.com/containernetworking/plugins
kCniVersion=v1.9.1
kCniPrograms=(./plugins/main/loopback ./plugins/main/ptp ./plugins/ipam/host-local)

# These tests cannot run here: they stop and replace containerd, or need a second release of it, a CNI of their own,
# other programs in their images, or Docker.
kSkippedTests='ContainerdRestart|TestUpgrade|TestReload100Pods|TestCRIImagePullTimeout|TestUpdatePodSandboxWithRestart'
kSkippedTests+='|TestNriPlugin|TestIssue7496|TestFailFastWhenConnectShim|TestRunPodSandbox(With|And)'
kSkippedTests+='|TestSandboxRemoveWithoutIPLeakage|TestPodDualStack|TestVolume|TestRuntimeHandlerUnpack|TestImageLoad'
kSkippedTests+='|TestIssue10(244|467)|TestSandboxStopWithNilCNIResult|TestPodSandboxController|TestContainerConsumedStats'

# With GOTOOLCHAIN=local, a Go that is too old reports that instead of downloading a newer one.
run_go() { CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false nice go "$@"; }

# fetch DIRECTORY ARGUMENT… : downloads all modules that the packages need; fails if one is not available.
fetch() {
  local directory=$1
  shift
  (cd "$directory" && run_go list -deps "$@" >/dev/null)
}

# module_source MODULE VERSION DIRECTORY: makes a writable copy of the module, to build in.
module_source() {
  local from
  [[ ! -d $3 ]] || return 0
  from=$(run_go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [[ -n $from ]] || return 1
  rm -rf "$3.new"
  cp -r "$from" "$3.new"
  chmod -R u+w "$3.new"
  mv "$3.new" "$3"
}

fetch_containerd() {
  local cache=$1
  mkdir -p "$cache/bin"
  module_source "$kContainerdModule" "$kContainerdVersion" "$cache/containerd-$kContainerdVersion" &&
    fetch "$cache/containerd-$kContainerdVersion" -mod=mod -tags "$kContainerdTags" "${kContainerdPrograms[@]}" &&
    fetch tests/conformance ./...
}

build_containerd() {
  local cache=$1 bin=$1/bin
  build_in "$cache/containerd-$kContainerdVersion" build -mod=mod -tags "$kContainerdTags" -o "$bin/" "${kContainerdPrograms[@]}"
  build_in tests/conformance build -o "$bin/" ./...
  export PATH=$bin:$PATH
}

fetch_conformance() {
  local cache=$1
  fetch_containerd "$cache" &&
    fetch "$cache/containerd-$kContainerdVersion" -mod=mod -test -tags "$kContainerdTags" ./integration &&
    module_source "$kCniModule" "$kCniVersion" "$cache/cni-$kCniVersion" &&
    fetch "$cache/cni-$kCniVersion" -mod=mod "${kCniPrograms[@]}" &&
    fetch tests/conformance/kubelet .
}

build_conformance() {
  local cache=$1 bin=$1/bin
  build_containerd "$cache"
  build_in "$cache/cni-$kCniVersion" build -mod=mod -o "$bin/cni/" "${kCniPrograms[@]}"
  lead_tests_to_both_sockets "$cache/containerd-$kContainerdVersion/integration/main_test.go"
  build_in "$cache/containerd-$kContainerdVersion" test -c -mod=mod -tags "$kContainerdTags" -o "$bin/cri-tests" ./integration
  build_in tests/conformance/kubelet build -o "$bin/kubelet" .
}

build_in() {
  local directory=$1
  shift
  (cd "$directory" && run_go "$@" >&2) || die "$directory could not be built; the output of Go is above"
}

# The tests use one socket for the CRI and for containerd's own API. Here only the CRI goes through topolet.
lead_tests_to_both_sockets() {
  sed -i 's|strings.TrimPrefix(\*criEndpoint, "unix://")|os.Getenv("CONTAINERD_SOCKET")|' "$1"
  grep -q CONTAINERD_SOCKET "$1" || die "found no socket to replace in $1; adapt lead_tests_to_both_sockets to containerd $kContainerdVersion"
}

# Replaces the configuration of containerd 1.6 by that of containerd 2.
write_runtime_config() {
  local workdir=$1 snapshotter=$2
  mkdir -p "$workdir/cni/net.d" "$workdir/cdi"
  cat >"$workdir/containerd.toml" <<TOML
version = 3
root = "$workdir/root"
state = "$workdir/state"
disabled_plugins = ["io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.differ.v1.erofs", "io.containerd.mount-handler.v1.erofs", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "$workdir/containerd.sock"
[ttrpc]
  address = "$workdir/containerd.sock.ttrpc"

[plugins."io.containerd.internal.v1.opt"]
  path = "$workdir/opt"
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "$workdir/shims"
$(nri_of_containerd "$workdir")
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "$snapshotter"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "$kPauseImage"
[plugins."io.containerd.cri.v1.runtime"]
  # Otherwise runc fails where this process may not lower its OOM score.
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  # One of containerd's own tests expects it.
  drain_exec_sync_io_timeout = "10s"
  cdi_spec_dirs = ["$workdir/cdi"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["$cache/bin/cni"]
    conf_dir = "$workdir/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        Root = "$workdir/runc"
        SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
TOML
  cat >"$workdir/cdi/parity.json" <<JSON
{"cdiVersion": "0.6.0", "kind": "topolet.io/parity", "devices": [{"name": "one", "containerEdits": {"env": ["CDI=yes"]}}]}
JSON
  cat >"$workdir/cni/net.d/10-topolet.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "topolet", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
  "dataDir": "$workdir/cni/ipam", "ranges": [[{"subnet": "198.18.77.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

# An image of busybox with all its commands and the users that the tests expect. Its default command only sleeps, so it
# serves as the pause image too.
make_busybox_image() {
  local tar_file=$1 reference=$2 work applet layer_sum
  work=$(mktemp -d "${tar_file%/*}/image.XXXXXX")
  mkdir -p "$work/layer/"{bin,dev,etc,home,proc,root,sbin,sys,tmp,usr/bin,var/tmp}
  cp "$(static_busybox)" "$work/layer/bin/busybox"
  for applet in $("$work/layer/bin/busybox" --list); do
    if [[ $applet != busybox ]]; then ln -s busybox "$work/layer/bin/$applet"; fi
  done
  printf 'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\n' >"$work/layer/etc/passwd"
  printf 'root:x:0:\ndaemon:x:1:\nwheel:x:10:root\n' >"$work/layer/etc/group"
  # The tests of image volumes look for these two files.
  touch "$work/layer/pause" "$work/layer/etc/os-release"
  chmod 1777 "$work/layer/tmp"
  tar -C "$work/layer" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
  layer_sum=$(sha256sum "$work/layer.tar")
  cat >"$work/config.json" <<JSON
{"architecture": "$(image_architecture)", "os": "linux", "config": {"Env": ["PATH=/bin:/sbin:/usr/bin"],
 "Cmd": ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:${layer_sum%% *}"]}}
JSON
  printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]' "$reference" >"$work/manifest.json"
  tar -C "$work" -cf "$tar_file" manifest.json config.json layer.tar
  rm -rf "$work"
}

kBusyboxImage=topolet.io/busybox:1

# open_workdir: starts a fresh containerd and a registry, which also has the pause image; close_workdir removes both.
open_workdir() {
  workdir=$(make_workdir "$$")
  make_busybox_image "$workdir/busybox.tar" "$kBusyboxImage"
  setsid registry --archive "$workdir/busybox.tar" --address-file "$workdir/registry.address" >>"$logs/registry.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/registry.pid"
  disown
  wait_until 10 test -s "$workdir/registry.address" || die "the registry did not start; see $logs/registry.log"
  registry=$(<"$workdir/registry.address")
  kPauseImage=$registry/pause:1
  start_runtime "$workdir" 2>>"$logs/scripts.log"
  disown "$(<"$workdir/containerd.pid")"
  import_image "$workdir/containerd.sock" "$workdir/busybox.tar" "$kBusyboxImage" 2>>"$logs/scripts.log"
  mkdir -p "$workdir/logs"
}

close_workdir() {
  [[ -n $workdir ]] || return 0
  cp "$workdir/containerd.log" "$logs/containerd-${workdir##*.}.log" 2>/dev/null || true
  cat "$workdir"/topoletd*.log >"$logs/topoletd-${workdir##*.}.log" 2>/dev/null || true
  cp "$workdir"/{etcd,kube-*}.log "$logs" 2>/dev/null || true
  cat "$workdir"/{runtime,dockerd*}.log >"$logs/runtime-${workdir##*.}.log" 2>/dev/null || true
  remove_workdir "$workdir"
  take_back_kubelet_places
  workdir='' runtime=''
}

# The options of the topoletd that is started, beyond the usual ones.
topoletd_options=()

start_topoletd() {
  local front=(--daemon.listen="unix://$workdir/topolet.sock")
  if [[ $kFront == nri ]]; then front=(--daemon.front=nri --nri.socket="unix://$workdir/nri.sock"); fi
  setsid "$daemon" --config /dev/null "${front[@]}" --daemon.control="$workdir/control.sock" \
    --daemon.runtime="unix://$workdir/containerd.sock" --daemon.state-dir="$workdir/state-of-topolet" \
    --daemon.plugin-dir="$plugins" --plugins.enable=numa "${topoletd_options[@]}" >>"$workdir/topoletd.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/topoletd.pid"
  disown
  wait_until 20 topolet_answers || die "topoletd did not start; see $workdir/topoletd.log"
}

topolet_answers() {
  grep -qs 'topoletd ready' "$workdir/topoletd.log" && { [[ $kFront == nri ]] || [[ -S $workdir/topolet.sock ]]; }
}

# socket_of WAY: of a kubelet. With NRI as topolet's front end that is the runtime's, in both ways.
socket_of() {
  if [[ $1 == through && $kFront == cri ]]; then echo "$workdir/topolet.sock"; else echo "$workdir/containerd.sock"; fi
}

# note WAY TEST RESULT
note() { printf '%s\t%s\n' "$2" "$3" >>"$results/$1"; }

run_suite() {
  local way
  for way in direct through; do
    say "Running containerd's tests ($way)"
    open_workdir
    if [[ $way == through ]]; then start_topoletd; fi
    cat >"$workdir/images.toml" <<TOML
Alpine = "$registry/alpine:1"
BusyBox = "$registry/busybox:1"
BusyBoxByDigest = "$registry/busybox:1"
Pause = "$kPauseImage"
ResourceConsumer = "$registry/resource-consumer:1"
Nginx = "$registry/nginx:1"
VolumeCopyUp = "$registry/volume-copy-up:1"
VolumeOwnership = "$registry/volume-ownership:1"
TOML
    # Tests that kill containerd by its process's name must not find one.
    (cd "$cache/containerd-$kContainerdVersion/integration" && TMPDIR=$workdir/tmp CONTAINERD_SOCKET=$workdir/containerd.sock cri-tests \
      -cri-endpoint "unix://$(socket_of "$way")" -image-list "$workdir/images.toml" -build-dir "$cache/bin" \
      -containerd-bin no-such-program \
      -test.v -test.timeout 20m -test.skip "$kSkippedTests") >"$logs/suite-$way.log" 2>&1 || true
    sed -n 's/^--- \(PASS\|FAIL\|SKIP\): \([^ ]*\) .*/suite: \2\t\1/p' "$logs/suite-$way.log" >>"$results/$way"
    close_workdir
  done
}

run_parity() {
  say "Comparing every method of the CRI"
  open_workdir
  start_topoletd
  parity -direct "unix://$workdir/containerd.sock" -through "unix://$workdir/topolet.sock" -image "$kBusyboxImage" \
    -remote-image "$registry/parity:1" -logs "$workdir/logs" -cgroups "/${workdir##*/}" -results "$results" \
    >"$logs/parity.log" 2>&1 || true
  grep -q '^SUBJECT' "$logs/parity.log" || note direct "parity: runs to its end" PASS
  grep -A 3 '^DIFFERENT' "$logs/parity.log" | cut -c 1-1000 >&2 || true
  close_workdir
}

# print_table: prints the results of both ways side by side; succeeds if every test that passes directly also passes
# through topolet, as do those that only exist with topolet.
print_table() {
  touch "$results/direct" "$results/through"
  awk -F '\t' '
    FILENAME == ARGV[1] { direct[$1] = $2; order[++count] = $1; next }
    { through[$1] = $2; if (!($1 in direct)) { direct[$1] = "-"; order[++count] = $1 } }
    END {
      printf "%-72s %-7s %s\n", "TEST", "DIRECT", "THROUGH"
      for (i = 1; i <= count; i++) {
        test = order[i]; result = (test in through) ? through[test] : "-"
        lost = result != "PASS" && (direct[test] == "PASS" || direct[test] == "-")
        bad += lost; same += direct[test] == "PASS" && result == "PASS"
        own += direct[test] == "-" && result == "PASS"
        printf "%-72s %-7s %s%s\n", test, direct[test], result, lost ? "   <-- lost" : ""
      }
      printf "\n%d pass both ways, %d more exist with topolet only and pass, %d are lost\n", same, own, bad
      exit bad > 0
    }' "$results/direct" "$results/through"
}
