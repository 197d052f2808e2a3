# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# What plugins set that only NRI can (memory policy, scheduler class, I/O priority), read from the containers' processes.

# Debian's is older than 1.2, which ignores a scheduler class and an I/O priority, and 1.4, which ignores a memory policy.
kRuncModule=github.com/opencontainers/runc
kRuncVersion=v1.5.2

fetch_runc() {
  module_source "$kRuncModule" "$kRuncVersion" "$1/runc-$kRuncVersion" &&
    (cd "$1/runc-$kRuncVersion" && go_with_cgo list -deps -mod=mod . >/dev/null)
}

# Into a directory of its own: all other tests are made with the distribution's.
build_runc() {
  (cd "$1/runc-$kRuncVersion" && go_with_cgo build -mod=mod -o "$1/oci/runc" . >&2) || die "runc could not be built; the output of Go is above"
}

# nri_settings_story RUNTIME: with the example policy `background`, and one that sets what it is told to.
nri_settings_story() {
  local name="nri front, settings, $1" kills=0 plugins=$plugins
  local -x PATH=$cache/oci:$PATH
  say "Setting what only NRI can ($1)"
  open_nri_workdir "$1"
  gather_setting_plugins "$workdir/plugins"
  plugins=$workdir/plugins
  topoletd_options=(--plugins.enable=background --plugins.enable=lively --lively.answer='#memory 3 1 0')
  start_topoletd
  check through "$name: topolet registers" 10 is_plugin
  check through "$name: a BestEffort container is created" 5 tries direct run job besteffort 0 0
  check through "$name: its scheduler class is batch" 5 has_scheduler_class job SCHED_BATCH
  check through "$name: its nice value is 10" 5 has_nice_value job 10
  check through "$name: its I/O class is idle" 5 has_io_class job idle
  check through "$name: topolet explain says so" 5 explains job 'gives way to others on its CPUs and to all I/O of others'
  # CRI-O 1.36 has NRI 0.11, which knows no memory policies.
  if [[ $1 == containerd ]]; then
    check through "$name: its memory is interleaved" 5 has_memory_policy job interleave
  else
    check through "$name: no memory policy, as its NRI has none" 5 has_memory_policy job default
  fi
  check through "$name: a container that asks for CPUs is created" 5 tries direct run web burstable 500 0
  check through "$name: the policy leaves it alone" 5 has_scheduler_class web SCHED_OTHER
  clear_pods job web
  close_workdir
  topoletd_options=()
}

# nri_settings_over_cri: the other front end has none of them, and the policy is told so.
nri_settings_over_cri() {
  local name="cri front, settings" kills=0 plugins=$plugins kFront=cri
  local -x PATH=$cache/oci:$PATH
  open_nri_workdir containerd
  gather_setting_plugins "$workdir/plugins"
  plugins=$workdir/plugins
  topoletd_options=(--plugins.enable=background --plugins.enable=lively --lively.answer='#memory 3 1 0')
  start_topoletd
  check through "$name: a BestEffort container is created" 5 tries through run job besteffort 0 0
  check through "$name: its scheduler class is as ever" 5 has_scheduler_class job SCHED_OTHER
  check through "$name: no memory policy" 5 has_memory_policy job default
  check through "$name: topolet explain says so" 5 explains job 'cannot run in the background through this front end and runtime'
  clear_pods job
  close_workdir
  topoletd_options=()
}

# gather_setting_plugins DIRECTORY
gather_setting_plugins() {
  mkdir "$1"
  cp "$plugins/numa.so" build/quick/tests/plugin/broken/plugins/lively.so "$1/"
  "${CXX:-c++}" -std=c++20 -shared -fPIC -fvisibility=hidden -I sdk/include -Wl,--version-script=sdk/cmake/plugin.map \
    -o "$1/background.so" sdk/example/background/background.cpp || die "the example policy background could not be built"
}

has_scheduler_class() { chrt --pid "$(process_in_runtime "$1")" 2>/dev/null | grep -q "policy: $2\$"; }
has_nice_value() { [[ $(ps -o ni= -p "$(process_in_runtime "$1")" | tr -d ' ') == "$2" ]]; }
has_io_class() { ionice -p "$(process_in_runtime "$1")" 2>/dev/null | grep -q "^$2"; }
# The policy of the process itself, which every mapping without one of its own has.
has_memory_policy() { awk -v policy="$2" '$2 ~ "^" policy { found = 1 } END { exit !found }' "/proc/$(process_in_runtime "$1")/numa_maps"; }
