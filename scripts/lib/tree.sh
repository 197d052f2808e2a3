# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# The tree /opt/topolet/VERSION: topolet with all of its libraries and the dynamic loader, for hosts of any distribution.

kTreePackages=(patchelf curl binutils)
kTreeBase=/opt/topolet
kTreeTargets=(topoletd topolet topolet_nri_preinstalled numa gpu smt load foreign-zone)

# project_version: that of topolet
project_version() { sed -n 's/^project(topolet VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt; }

# libraries_of FILE…: the libraries that they load, and the loader, by the paths that ldd prints.
libraries_of() { ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// && $2 ~ /^\(/ {print $1}' | sort -u; }

loader_of() { patchelf --print-interpreter "$1"; }

# A library of the host, such as NVIDIA's, may load parts of libc that topolet does not.
other_parts_of_libc() {
  local directory part
  directory=$(dirname "$(libraries_of "$1" | grep '/libc\.so\.6$')")
  for part in libdl.so.2 libm.so.6 libpthread.so.0 libresolv.so.2 librt.so.1; do echo "$directory/$part"; done
}

# bind_to_libraries DIRECTORY LOADER FILE…: programs find the loader and their libraries in the directory, and so do the
# plugins and libraries that they load. RPATH, because a RUNPATH does not hold for those.
bind_to_libraries() {
  local file
  for file in "${@:3}"; do patchelf --set-interpreter "$1/$2" --force-rpath --set-rpath "$1" "$file"; done
}

# packages_of FILE…: the Debian packages that they are from. Where /lib is a link, a package may have its files below
# either of the two.
packages_of() {
  local file paths=()
  for file in "$@"; do
    paths+=("$file" "/usr$file" "${file#/usr}" "$(realpath "$file")")
  done
  { dpkg -S "${paths[@]}" 2>/dev/null || true; } | sed 's/[:,].*//' | sort -u
}

# copy_licences DIRECTORY FILE…: of the packages that they are from.
copy_licences() {
  local directory=$1 packages package
  shift
  mapfile -t packages < <(packages_of "$@")
  ((${#packages[@]} > 0)) || die "the libraries belong to no Debian packages, so their licences are not known"
  for package in "${packages[@]}"; do
    mkdir -p "$directory/$package"
    cp -L "/usr/share/doc/$package/copyright" "$directory/$package/"
  done
}

# write_tree_units BUILD DIRECTORY
write_tree_units() {
  local current=$kTreeBase/current
  # An older systemd does not know all that a newer libc asks the kernel for. That libc does without what is not
  # implemented, but not without what is forbidden.
  sed -e "s|^ExecStart=.*|ExecStart=$current/sbin/topoletd --daemon.plugin-dir=$current/lib/topolet/plugins|" \
    -e "s|^ExecReload=.*|ExecReload=$current/bin/topolet reload|" \
    -e "s|^RequiresMountsFor=.*|RequiresMountsFor=$kTreeBase /var/lib/topolet|" \
    -e 's|^SystemCallErrorNumber=.*|SystemCallErrorNumber=ENOSYS|' \
    -e '/^Documentation=/d' deploy/topoletd.service.in >"$2/topoletd.service"
  if grep -q '@[A-Z_]*@' "$2/topoletd.service"; then die "deploy/topoletd.service.in has more to be replaced"; fi
  cp deploy/topoletd.socket deploy/topoletd-retry.service "$2/"
}

# make_tree BUILD VERSION DIRECTORY: DIRECTORY is what is to be /opt/topolet/VERSION; it must not exist.
make_tree() {
  local build=$1 version=$2 tree=$3 loader programs curl libraries
  [[ $version =~ ^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$ && ${#version} -le 63 ]] ||
    die "'$version' is no version that a node's label can have: letters, digits, '.', '_' and '-', 63 at most"
  curl=$(type -P curl) || die "curl is not installed"
  mkdir -p "$tree"/{bin,sbin,libexec,units,lib/topolet/plugins,share/doc}
  cp "$build/core/topoletd" "$tree/sbin/"
  cp "$build/core/cli/topolet" "$tree/bin/"
  cp "$build/plugins"/{numa,gpu,smt,load,foreign-zone}.so "$tree/lib/topolet/plugins/"
  cp "$build/core/fronts/nri/50-topolet" "$tree/libexec/"
  # By which topolet-node asks for the Node; the host may have none.
  cp "$curl" "$tree/libexec/"
  chmod 644 "$tree/lib/topolet/plugins/"*
  programs=("$tree/sbin/topoletd" "$tree/bin/topolet" "$tree/libexec/curl" "$tree/libexec/50-topolet")
  strip --strip-unneeded "${programs[@]}" "$tree/lib/topolet/plugins/"*.so
  mapfile -t libraries < <({
    libraries_of "${programs[@]}" "$tree/lib/topolet/plugins/"*.so
    other_parts_of_libc "${programs[0]}"
  } | sort -u)
  loader=$(basename "$(loader_of "${programs[0]}")")
  cp -L "${libraries[@]}" "$tree/lib/"
  chmod 644 "$tree/lib/"*.so*
  chmod 755 "$tree/lib/$loader"
  bind_to_libraries "$kTreeBase/$version/lib" "$loader" "${programs[@]}"
  copy_licences "$tree/share/doc" "$curl" "${libraries[@]}"
  cp deploy/debian/copyright "$tree/share/doc/copyright"
  cp deploy/topolet.conf "$tree/"
  cp deploy/node/topolet-node deploy/node/topolet-node-pod "$tree/"
  chmod 755 "$tree"/topolet-node*
  write_tree_units "$build" "$tree/units"
  echo "$version" >"$tree/version"
  (cd "$tree" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) >"$tree.contents"
  mv "$tree.contents" "$tree/contents"
}

# pack FILE.tar DIRECTORY NAME…: what of DIRECTORY has the names; the same files make the same archive.
pack() {
  tar -C "$2" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner --format=gnu -cf "$1" "${@:3}"
}
