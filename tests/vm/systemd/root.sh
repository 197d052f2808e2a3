# shellcheck shell=bash disable=SC2154 # constants and workdir are shared between the files
# A Debian root with systemd, containerd and what the package of topolet depends on, for tests/vm/run.

# init-system-helpers: the scripts of packages use them. libnss-…, iproute2 and the like are not needed.
kSystemdRootPackages=(systemd systemd-sysv udev dbus init-system-helpers containerd runc util-linux mount iproute2)

# pack_topolet: sets $deb, the package of the build as it is, and $next_deb, the same as a later version.
pack_topolet() {
  say "Packing the build"
  (umask 022 && cd "$build" && cpack -G DEB -B "$workdir/made" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip) >"$workdir/cpack.log" 2>&1 || {
    cat "$workdir/cpack.log" >&2
    die "cpack failed; its output is above"
  }
  deb=$(echo "$workdir/made"/topolet_*.deb)
  next_deb=$workdir/made/next.deb
  dpkg-deb -R "$deb" "$workdir/next"
  sed -i 's/^Version: .*/&+next/' "$workdir/next/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -b "$workdir/next" "$next_deb" >/dev/null
  rm -rf "$workdir/next"
}

# The packages that a package depends on, without versions, separated by commas.
dependencies_of() { dpkg-deb -f "$1" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g'; }

# apt's sources of the release that this runs on, without those of others.
apt_sources() {
  local codename=$1 file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
    if grep -qsE "^[^#]*[[:space:]]$codename([-[:space:]]|\$)" "$file"; then echo "$file"; fi
  done
}

own_codename() {
  # shellcheck source=/dev/null
  (. /etc/os-release && echo "${VERSION_CODENAME-}")
}

# sources_of CODENAME: what mmdebstrap takes as its sources. Another release is where this one is from.
sources_of() {
  if [[ $1 == "$(own_codename)" ]]; then apt_sources "$1"; else
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' | sed -n "s/^$(own_codename) //p" | sort -u | head -n 1
  fi
}

# systemd_root CODENAME PACKAGES: prints the archive of a root with systemd and these packages, separated by commas; makes
# it if there is none.
systemd_root() {
  local codename=$1 include sources archive
  include=$(IFS=, && echo "${kSystemdRootPackages[*]}"),$2
  archive=build/vm/systemd-root-$codename-$(printf '%s' "$codename $include" | sha256sum | cut -c 1-12).tar
  if [[ ! -s $archive ]]; then
    mapfile -t sources < <(sources_of "$codename")
    say "Making a root with systemd in $archive"
    mkdir -p build/vm
    rm -f "build/vm/systemd-root-$codename"-*.tar
    mmdebstrap --quiet --format=tar --variant=minbase --include="$include" "$codename" "$archive.new" "${sources[@]}" >&2 || return 1
    mv "$archive.new" "$archive"
  fi
  echo "$archive"
}

# furnish_systemd_root ROOT ARCHIVE: unpacks it, and makes it a machine that runs the programs of the test.
furnish_systemd_root() {
  local root=$1 unit
  mkdir -p "$root"
  tar -C "$root" --numeric-owner -xf "$2"
  mkdir -p "$root/vm" "$root/etc/containerd" "$root/etc/systemd/system/multi-user.target.wants"
  cp tests/vm/systemd/run-programs "$root/vm/"
  make_image "$root/vm/images.tar" "$kPauseImage" "$kStoryImage"
  cp tests/vm/systemd/containerd.toml "$root/etc/containerd/config.toml"
  cp tests/vm/systemd/vm.service "$root/etc/systemd/system/"
  ln -s ../vm.service "$root/etc/systemd/system/multi-user.target.wants/"
  # The console is the test's, and what nobody needs here would take a minute of the machine's time.
  for unit in serial-getty@ttyS0 systemd-logind e2scrub_reap systemd-update-utmp systemd-update-utmp-runlevel; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
  done
  ln -sf /dev/null "$root/etc/systemd/system/timers.target"
  : >"$root/etc/machine-id"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  rm -f "$root/etc/resolv.conf"
  : >"$root/etc/resolv.conf"
  echo topolet-vm >"$root/etc/hostname"
}

# fill_systemd ROOT: all files of a machine with systemd. The package is not installed yet: that is for the test.
fill_systemd() {
  local root=$1 archive
  pack_topolet
  archive=$(systemd_root "$(own_codename)" "$(dependencies_of "$deb")") ||
    skip "no root with systemd: mmdebstrap cannot make one from the packages that apt knows"
  furnish_systemd_root "$root" "$archive"
  cp "$deb" "$root/vm/topolet.deb"
  cp "$next_deb" "$root/vm/next.deb"
}
