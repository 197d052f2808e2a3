# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# Container images from directories, without a base image.

kImagePackages=(mmdebstrap gzip)
# Besides the libraries of the programs: what the pod of the installer runs, and what names things.
kImageRootPackages=(base-files netbase busybox-static)

# make_root DIRECTORY PROGRAM…: Debian's packages that the programs need, unpacked and not installed.
make_root() {
  local root=$1 codename libraries packages include
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  mapfile -t libraries < <(libraries_of "${@:2}")
  mapfile -t packages < <(packages_of "${libraries[@]}")
  include=$(IFS=, && echo "${kImageRootPackages[*]},${packages[*]}")
  mmdebstrap --quiet --mode=root --variant=extract --include="$include" "$codename" "$root" >&2 ||
    die "mmdebstrap could not make the image's root; its output is above"
  tidy_root "$root"
}

# Removes files that no program in the image reads. Licences stay.
tidy_root() {
  local root=$1
  rm -rf "$root"/usr/share/{man,info,locale,lintian,bug,zoneinfo} "$root"/var/{cache,log,lib/{apt,dpkg}} "$root"/etc/apt \
    "$root"/usr/lib/*/{gconv,perl*} "$root"/usr/share/perl*
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  find "$root/usr/share/doc" -type d -empty -delete
  mkdir -p "$root"/{bin,etc,dev,proc,sys,tmp,var/log}
  chmod 1777 "$root/tmp"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\n' >"$root/etc/group"
  chroot "$root" /bin/busybox --install -s /bin
  ldconfig -r "$root"
  rm -f "$root/var/cache/ldconfig/aux-cache"
}

# add_blob DIRECTORY FILE: moves the file to where its digest says, and prints the digest and the size.
add_blob() {
  local sum
  sum=$(sha256sum "$2")
  sum=${sum%% *}
  stat -c "sha256:$sum %s" "$2"
  mv "$2" "$1/blobs/sha256/$sum"
}

# descriptor MEDIA_TYPE DIGEST SIZE
descriptor() { printf '{"mediaType": "application/vnd.oci.image.%s", "digest": "%s", "size": %s}' "$@"; }

# make_oci_archive FILE.tar REFERENCE DIRECTORY…: each directory becomes a layer.
make_oci_archive() {
  local archive=$1 reference=$2 layout directory sum digest size layers=() sums=() created
  shift 2
  layout=$(mktemp -d "$work/layout.XXXXXX")
  mkdir -p "$layout/blobs/sha256"
  for directory in "$@"; do
    pack "$work/layer.tar" "$directory" .
    sum=$(sha256sum "$work/layer.tar")
    sums+=("\"sha256:${sum%% *}\"")
    gzip -n <"$work/layer.tar" >"$work/layer.tar.gz"
    read -r digest size < <(add_blob "$layout" "$work/layer.tar.gz")
    layers+=("$(descriptor layer.v1.tar+gzip "$digest" "$size")")
  done
  created=$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)
  cat >"$work/config.json" <<JSON
{"created": "$created", "architecture": "$(image_architecture)", "os": "linux",
 "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Entrypoint": ["topolet-agent"]},
 "rootfs": {"type": "layers", "diff_ids": [$(IFS=, && echo "${sums[*]}")]}}
JSON
  read -r digest size < <(add_blob "$layout" "$work/config.json")
  cat >"$work/manifest.json" <<JSON
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
 "config": $(descriptor config.v1+json "$digest" "$size"), "layers": [$(IFS=, && echo "${layers[*]}")]}
JSON
  read -r digest size < <(add_blob "$layout" "$work/manifest.json")
  # containerd reads the first name, skopeo the second.
  cat >"$layout/index.json" <<JSON
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
 {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "$digest", "size": $size,
  "platform": {"architecture": "$(image_architecture)", "os": "linux"},
  "annotations": {"io.containerd.image.name": "docker.io/library/$reference", "org.opencontainers.image.ref.name": "${reference##*:}"}}]}
JSON
  printf '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
  pack "$archive" "$layout" oci-layout index.json blobs
  rm -rf "$layout" "$work/layer.tar"
}
