# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# Installs the Debian packages that are missing, and only those.

kBuildPackages=(
  g++ cmake ninja-build pkg-config ccache mold
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libboost-dev libboost-program-options-dev libhwloc-dev libsqlite3-dev libssl-dev libsystemd-dev
  libspdlog-dev libfmt-dev nlohmann-json3-dev libyaml-dev libcurl4-openssl-dev libxxhash-dev libsimdjson-dev libnghttp2-dev
  prometheus-cpp-dev libgtest-dev libgmock-dev libbenchmark-dev
)
kCheckPackages=(clang libclang-rt-14-dev clang-format abigail-tools)
# The packages that scripts/package and its test need.
kPackagingPackages=(dpkg-dev file gzip perl)
kPackageCheckPackages=(man-db mandoc shellcheck zsh)
kTidyPackages=(clang-tidy)
# For the reference pages of the SDK, and its example in Rust.
kSdkPackages=(doxygen rustc)
kMachinePackages=(qemu-system-x86 e2fsprogs)
kSystemdMachinePackages=(mmdebstrap)
kTools=build/tools
kMachineKernel=build/vm/vmlinuz

# Prints the packages that a private runtime needs. A containerd that was installed in another way is used as it is.
runtime_packages() {
  command -v containerd >/dev/null && command -v ctr >/dev/null || echo containerd
  command -v runc >/dev/null || echo runc
  image_packages
}

# Prints what the test of the agent's page needs, if this distribution has it: some have Chromium in another form.
page_packages() {
  local package
  for package in chromium nodejs; do
    if apt-cache show "$package" >/dev/null 2>&1; then echo "$package"; fi
  done
}

image_packages() {
  static_busybox >/dev/null || is_installed busybox || echo busybox-static
}

static_busybox() {
  local busybox
  for busybox in /bin/busybox /usr/bin/busybox "$kTools/bin/busybox"; do
    [[ -x $busybox ]] && ! ldd "$busybox" >/dev/null 2>&1 && echo "$busybox" && return
  done
  return 1
}

# Debian's packages busybox and busybox-static conflict. If the first is installed, the second is only unpacked.
unpack_static_busybox() {
  if static_busybox >/dev/null || ! is_installed busybox; then return 0; fi
  say "Unpacking busybox-static into $kTools"
  mkdir -p "$kTools"
  (cd "$kTools" && run_apt download busybox-static && dpkg-deb -x busybox-static_*.deb .)
}

find_promtool() {
  command -v promtool || { [[ -x $kTools/bin/promtool ]] && echo "$PWD/$kTools/bin/promtool"; }
}

# Unpacks promtool for tests/monitoring. Its package, installed, would make this host run a Prometheus.
unpack_promtool() {
  if find_promtool >/dev/null; then return 0; fi
  command -v apt-get >/dev/null || return 1
  local work code=0
  say "Unpacking promtool into $kTools/bin"
  mkdir -p "$kTools/bin"
  work=$(mktemp -d "$kTools/promtool.XXXXXX")
  (cd "$work" && run_apt -o APT::Sandbox::User=root download prometheus &&
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool) &&
    mv "$work/usr/bin/promtool" "$kTools/bin/promtool" || code=1
  rm -rf "$work"
  return "$code"
}

# Unpacks the kernel for tests/vm without installing it. Debian's cloud kernel has NVMe, ext4 and NUMA built in.
unpack_machine_kernel() {
  [[ ! -s $kMachineKernel ]] || return 0
  command -v apt-get >/dev/null || return 1
  local package work code=0
  package=$(machine_kernel_package)
  if [[ -z $package ]] && ((EUID == 0)); then
    run_apt update
    package=$(machine_kernel_package)
  fi
  [[ -n $package ]] || return 1
  say "Unpacking the kernel of $package into ${kMachineKernel%/*}"
  mkdir -p "${kMachineKernel%/*}"
  work=$(mktemp -d "${kMachineKernel%/*}/kernel.XXXXXX")
  (cd "$work" && run_apt -o APT::Sandbox::User=root download "$package" && dpkg-deb -x "$package"_*.deb .) &&
    mv "$work"/boot/vmlinuz-* "$kMachineKernel" || code=1
  rm -rf "$work"
  return "$code"
}

machine_kernel_package() {
  apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -n 1
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# install_packages PACKAGE…
install_packages() {
  local package missing=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  command -v apt-get >/dev/null || die "apt-get is not available to install the missing Debian packages: ${missing[*]}"
  ((EUID == 0)) || die "packages are missing; install them as root: apt-get install --no-install-recommends ${missing[*]}"
  say "Installing ${#missing[@]} missing packages: ${missing[*]}"
  run_apt update
  run_apt install --yes --no-install-recommends --no-remove "${missing[@]}" ||
    die "the packages could not be installed; the output of apt-get is above"
  if [[ " ${missing[*]} " == *" containerd "* ]]; then leave_service_off containerd.service; fi
}

# Runs apt-get so that it asks nothing, packages start no service, and needrestart restarts none.
run_apt() {
  DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 NEEDRESTART_SUSPEND=1 \
    apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >&2
}

# The package enables its service for the next boot, but only our private runtime is to run.
leave_service_off() {
  if [[ -d /run/systemd/system ]]; then systemctl --quiet disable "$1" >&2 || true; fi
}
