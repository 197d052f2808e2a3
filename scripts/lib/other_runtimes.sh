# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# CRI-O, and Docker behind cri-dockerd: runtimes that tell less of their containers than containerd. Each is private as
# the containerd of runtime.sh is, and listens on WORKDIR/containerd.sock in its place.

kCrioModule=github.com/cri-o/cri-o
kCrioVersion=v1.36.3
kCrioTags='containers_image_openpgp exclude_graphdriver_btrfs exclude_graphdriver_devicemapper'
kCriDockerdModule=github.com/Mirantis/cri-dockerd
kCriDockerdVersion=v0.4.3

# fetch_runtime CACHE RUNTIME: what it takes to build it; fails if that is not to be had.
fetch_runtime() {
  local cache=$1
  mkdir -p "$cache/bin"
  fetch tests/conformance ./... || return 1
  case $2 in
    crio)
      module_source "$kCrioModule" "$kCrioVersion" "$cache/crio-$kCrioVersion" &&
        (cd "$cache/crio-$kCrioVersion" && go_with_cgo list -deps -mod=mod -tags "$kCrioTags" ./cmd/crio >/dev/null) &&
        unpack_package conmon "$cache/conmon"
      ;;
    docker)
      module_source "$kCriDockerdModule" "$kCriDockerdVersion" "$cache/cri-dockerd-$kCriDockerdVersion" &&
        fetch "$cache/cri-dockerd-$kCriDockerdVersion" -mod=mod . && unpack_package docker.io "$cache/docker"
      ;;
  esac
}

# packages_of_runtime RUNTIME: prints the packages that it needs to be built and to run.
packages_of_runtime() {
  case $1 in
    crio) printf '%s\n' gcc libc6-dev make libglib2.0-0 ;;
    docker) printf '%s\n' libdevmapper1.02.1 ;;
  esac
}

go_with_cgo() { CGO_ENABLED=1 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false nice go "$@"; }

# unpack_package PACKAGE DIRECTORY: a package of the distribution, unpacked and not installed, since it would start a
# service.
unpack_package() {
  local package=$1 directory=$2 work
  [[ ! -d $directory ]] || return 0
  work=$(mktemp -d "$directory.XXXXXX")
  if (cd "$work" && run_apt -o APT::Sandbox::User=root download "$package" && dpkg-deb -x "$package"_*.deb .); then
    rm -f "$work"/*.deb
    mv "$work" "$directory"
  else
    rm -rf "$work"
    return 1
  fi
}

build_runtime() {
  local cache=$1 bin=$1/bin
  build_in tests/conformance build -o "$bin/" ./...
  case $2 in
    crio)
      (cd "$cache/crio-$kCrioVersion" && go_with_cgo build -mod=mod -tags "$kCrioTags" -o "$bin/crio" ./cmd/crio >&2 &&
        make --quiet -C pinns >&2) || die "CRI-O could not be built; the output is above"
      ;;
    docker)
      build_in "$cache/cri-dockerd-$kCriDockerdVersion" build -mod=mod -o "$bin/cri-dockerd" .
      ;;
  esac
  export PATH=$bin:$PATH
}

# write_oci_wrapper FILE: a runc for where this process may not lower its OOM score, or the kernel cannot limit huge
# pages, both of which the kubelet asks for.
write_oci_wrapper() {
  cat >"$1" <<'WRAPPER'
#!/usr/bin/env bash
bundle=. previous=''
for argument in "$@"; do
  case $previous in --bundle | -b) bundle=$argument ;; esac
  case $argument in --bundle=*) bundle=${argument#--bundle=} ;; esac
  previous=$argument
done
case " $* " in
  *" create "* | *" run "*)
    sed -i 's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj": 0/' "$bundle/config.json"
    if ! grep -q hugetlb /proc/self/cgroup /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
      sed -i -z 's/"hugepageLimits": *\[[^]]*\]/"hugepageLimits": []/' "$bundle/config.json"
    fi
    ;;
esac
exec runc "$@"
WRAPPER
  chmod 755 "$1"
}

# start_crio: on WORKDIR/containerd.sock.
start_crio() {
  mkdir -p "$workdir/crio" "$workdir/tmp"
  write_oci_wrapper "$workdir/oci"
  printf '{"default": [{"type": "insecureAcceptAnything"}]}' >"$workdir/crio/policy.json"
  printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$registry" >"$workdir/crio/registries.conf"
  cat >"$workdir/crio/crio.conf" <<TOML
[crio]
root = "$workdir/crio/root"
runroot = "$workdir/crio/run"
storage_driver = "vfs"
log_dir = "$workdir/crio/logs"
version_file = "$workdir/crio/version"
version_file_persist = ""
clean_shutdown_file = "$workdir/crio/clean"
internal_wipe = false
[crio.api]
listen = "$workdir/containerd.sock"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
default_runtime = "runc"
namespaces_dir = "$workdir/crio/namespaces"
container_exits_dir = "$workdir/crio/exits"
container_attach_socket_dir = "$workdir/crio/attach"
pinns_path = "$cache/crio-$kCrioVersion/bin/pinns"
apparmor_profile = "unconfined"
irqbalance_config_restore_file = "disable"
hooks_dir = []
disable_hostport_mapping = true
[crio.runtime.runtimes.runc]
runtime_path = "$workdir/oci"
runtime_type = "oci"
runtime_root = "$workdir/runc"
monitor_path = "$cache/conmon/usr/bin/conmon"
monitor_cgroup = "pod"
[crio.image]
pause_image = "$kPauseImage"
pause_command = ""
signature_policy = "$workdir/crio/policy.json"
signature_policy_dir = "$workdir/crio/policies"
[crio.network]
network_dir = "$workdir/cni/net.d"
plugin_dirs = ["$workdir/cni/bin"]
$(nri_of_crio "$workdir")
TOML
  mkdir -p "$workdir/crio/"{policies,exits,attach} "$workdir/cni/"{net.d,bin}
  begin_crio
}

begin_crio() {
  CONTAINERS_REGISTRIES_CONF=$workdir/crio/registries.conf CONTAINER_REGISTRIES_CONF=$workdir/crio/registries.conf \
    CONTAINERS_STORAGE_CONF=/dev/null TMPDIR=$workdir/tmp setsid crio --config "$workdir/crio/crio.conf" --config-dir '' \
    >>"$workdir/runtime.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/crio.pid"
  disown
  wait_until 60 test -S "$workdir/containerd.sock" || die "CRI-O did not start; see $workdir/runtime.log"
}

# start_docker: dockerd with a containerd of its own, and cri-dockerd on WORKDIR/containerd.sock.
start_docker() {
  mkdir -p "$workdir/docker" "$workdir/tmp" "$workdir/cni/"{net.d,bin,cache}
  write_oci_wrapper "$workdir/oci"
  cat >"$workdir/docker/daemon.json" <<JSON
{"data-root": "$workdir/docker/root", "exec-root": "$workdir/docker/run", "pidfile": "$workdir/docker/dockerd-itself.pid",
 "hosts": ["unix://$workdir/docker/docker.sock"], "storage-driver": "vfs", "bridge": "none", "iptables": false,
 "exec-opts": ["native.cgroupdriver=cgroupfs"], "insecure-registries": ["$registry"],
 "runtimes": {"wrapped": {"path": "$workdir/oci"}}, "default-runtime": "wrapped", "group": "root", "live-restore": true}
JSON
  begin_dockerd
  begin_cri_dockerd
}

begin_dockerd() {
  # With the distribution's containerd, which it was made for.
  PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=$workdir/tmp setsid "$cache/docker/usr/sbin/dockerd" --config-file "$workdir/docker/daemon.json" \
    >>"$workdir/dockerd.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/dockerd.pid"
  disown
  wait_until 60 grep -qs 'API listen on' "$workdir/dockerd.log" || die "dockerd did not start; see $workdir/dockerd.log"
}

begin_cri_dockerd() {
  setsid cri-dockerd --container-runtime-endpoint "unix://$workdir/containerd.sock" \
    --docker-endpoint "unix://$workdir/docker/docker.sock" --cri-dockerd-root-directory "$workdir/cri-dockerd" \
    --pod-infra-container-image "$kPauseImage" --cni-conf-dir "$workdir/cni/net.d" --cni-bin-dir "$workdir/cni/bin" \
    --cni-cache-dir "$workdir/cni/cache" --streaming-bind-addr 127.0.0.1:0 >>"$workdir/runtime.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/cri-dockerd.pid"
  disown
  wait_until 60 test -S "$workdir/containerd.sock" || die "cri-dockerd did not start; see $workdir/runtime.log"
}
