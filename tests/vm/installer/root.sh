# shellcheck shell=bash disable=SC2154 # constants and variables are shared between the files
# A Debian of another release, with what topolet-node finds on a node, for tests/vm/run.

kStandIns=(stand_in_kubelet stand_in_apiserver)

expect_installer_built() {
  local program
  for program in "${kStandIns[@]}"; do
    [[ -x $build/tests/vm/$program ]] || missing+=("$program")
  done
  [[ -x $build/core/cli/topolet ]] || missing+=(topolet)
  [[ -x $build/core/fronts/nri/50-topolet ]] || missing+=(topolet_nri_preinstalled)
  [[ -f $build/plugins/smt.so ]] || missing+=(smt)
  [[ -f $build/plugins/load.so ]] || missing+=(load)
  [[ -f $build/plugins/foreign-zone.so ]] || missing+=(foreign-zone)
}

# take_tools ROOT FILE…: programs of this release, with their libraries, into /vm/tools.
take_tools() {
  local tools=$1/vm/tools programs libraries
  shift
  mkdir -p "$tools/bin" "$tools/lib"
  cp -L "$@" "$tools/bin/"
  programs=("$tools"/bin/*)
  strip --strip-debug "${programs[@]}"
  mapfile -t libraries < <(libraries_of "$@")
  cp -nL "${libraries[@]}" "$tools/lib/"
  bind_to_libraries /vm/tools/lib "$(basename "$(loader_of "${programs[0]}")")" "${programs[@]}"
}

# The root of the installer's pod.
make_pod_root() {
  local pod=$1 program
  mkdir -p "$pod"/{bin,dev,proc,tmp,var/run,opt/topolet}
  cp "$(static_busybox)" "$pod/bin/busybox"
  for program in $("$pod/bin/busybox" --list); do
    if [[ $program != busybox ]]; then ln -s busybox "$pod/bin/$program"; fi
  done
  cp -R "$2" "$pod/opt/topolet/"
}

# A package that has the name of topolet's, and nothing else.
make_empty_package() {
  mkdir -p "$workdir/empty/DEBIAN"
  printf 'Package: topolet\nVersion: 1\nArchitecture: all\nMaintainer: none <none@topolet.example>\nDescription: empty\n' \
    >"$workdir/empty/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$workdir/empty" "$1" >/dev/null
}

# Debian 11's containerd is older than any that a current kubelet works with.
replace_runtime() {
  local program
  take_tools "$1" "$(type -P containerd)" "$(type -P containerd-shim-runc-v2)" "$(type -P ctr)" "$(type -P runc)"
  for program in containerd containerd-shim-runc-v2 ctr runc; do
    ln -sf "/vm/tools/bin/$program" "$1/usr/bin/$program"
  done
}

# fill_installer ROOT: all files of the machine.
fill_installer() {
  local root=$1 archive unit version filter=${programs[0]#installer_test}
  archive=$(systemd_root "$release" dpkg) || skip "no root of $release: mmdebstrap cannot make one from where this release is from"
  furnish_systemd_root "$root" "$archive"
  say "Making two trees"
  mkdir "$root/vm/trees"
  for version in 1.0 1.1; do make_tree "$build" "$version" "$root/vm/trees/$version"; done
  make_pod_root "$root/vm/pod" "$root/vm/trees/1.0"
  make_empty_package "$root/vm/topolet.deb"
  take_tools "$root" "${kStandIns[@]/#/$build/tests/vm/}" "$(type -P curl)"
  if [[ $release == bullseye ]]; then replace_runtime "$root"; fi
  ln -s /vm/tools/bin/stand_in_kubelet "$root/usr/bin/kubelet"
  mkdir -p "$root/etc/systemd/system/kubelet.service.d" "$root/var/lib/kubelet"
  printf 'kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n' >"$root/var/lib/kubelet/config.yaml"
  echo 'KUBELET_EXTRA_ARGS=--v=2' >"$root/etc/default/kubelet"
  cp tests/vm/installer/kubelet.service tests/vm/installer/stand-in-apiserver.service "$root/etc/systemd/system/"
  cp tests/vm/installer/10-kubeadm.conf "$root/etc/systemd/system/kubelet.service.d/"
  for unit in kubelet stand-in-apiserver; do
    ln -s "../$unit.service" "$root/etc/systemd/system/multi-user.target.wants/"
  done
  cp tests/vm/installer/installer_test "$root/vm/"
  printf '/vm/installer_test\t%s\n' "${filter#=}" | sed 's/\t$/\t*/' >"$root/programs"
}
