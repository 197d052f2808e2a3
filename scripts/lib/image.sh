# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# Makes a container image from a static busybox: it needs no registry and no download.

kPauseImage=registry.k8s.io/pause:3.6
kStoryImage=topolet.io/story:1

# make_image TAR_FILE REFERENCE… : writes a docker archive with one layer. Its process sleeps until SIGTERM, then exits
# with 0.
make_image() {
  local tar_file=$1 work layer_sum busybox reference tags=()
  shift
  for reference in "$@"; do tags+=("\"$reference\""); done
  busybox=$(static_busybox) || die "no static busybox found; install the package busybox-static"
  work=$(mktemp -d "${tar_file%/*}/image.XXXXXX")
  mkdir -p "$work/layer/"{bin,dev,etc,proc,sys,tmp}
  cp "$busybox" "$work/layer/bin/busybox"
  ln -s busybox "$work/layer/bin/sh"
  ln -s busybox "$work/layer/bin/cat"
  ln -s busybox "$work/layer/bin/grep"
  ln -s busybox "$work/layer/bin/sleep"
  tar -C "$work/layer" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" .
  layer_sum=$(sha256sum "$work/layer.tar")
  cat >"$work/config.json" <<JSON
{"architecture": "$(image_architecture)", "os": "linux",
 "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:${layer_sum%% *}"]}}
JSON
  cat >"$work/manifest.json" <<JSON
[{"Config": "config.json", "RepoTags": [$(IFS=,; echo "${tags[*]}")], "Layers": ["layer.tar"]}]
JSON
  tar -C "$work" -cf "$tar_file" manifest.json config.json layer.tar
  rm -rf "$work"
}

image_architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# has_image ADDRESS REFERENCE: whether the CRI part of the containerd at ADDRESS knows the image.
has_image() {
  ctr --address "$1" --namespace k8s.io images list --quiet \
    "name==$2,labels.\"io.cri-containerd.image\"==managed" 2>/dev/null | grep -q .
}

# import_image ADDRESS TAR_FILE REFERENCE… : imports without unpacking. The runtime unpacks the image at the first
# create, with its own snapshotter.
import_image() {
  local address=$1 tar_file=$2 reference
  shift 2
  ctr --address "$address" --namespace k8s.io images import --no-unpack "$tar_file" >/dev/null
  for reference in "$@"; do
    wait_until 120 has_image "$address" "$reference" || die "containerd at $address does not list the image $reference"
  done
}
