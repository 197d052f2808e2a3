# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# Configures and builds a preset below build/. Prints nothing about what is up to date.

kStoryProgram=build/quick/tests/integration/topolet-story
kKillRunProgram=build/quick/tests/integration/kill_run_test
kDaemonProgram=build/quick/core/topoletd
kCommandProgram=build/quick/core/cli/topolet
kPluginDir=build/quick/plugins

# configure_preset PRESET [CMAKE_OPTION…]
configure_preset() {
  say "Configuring the $1 build"
  cmake --preset "$@" >&2
}

# configure_presets PRESET…: those that are not configured yet, at the same time.
configure_presets() {
  local preset process processes=() code=0
  for preset in "$@"; do
    [[ ! -f build/$preset/build.ninja ]] || continue
    configure_preset "$preset" &
    processes+=("$!")
  done
  for process in "${processes[@]}"; do wait "$process" || code=$?; done
  return "$code"
}

# build_preset PRESET [TARGET…]
build_preset() {
  local preset=$1 target args=()
  shift
  for target in "$@"; do args+=(--target "$target"); done
  [[ -f build/$preset/build.ninja ]] || configure_preset "$preset"
  say "Building ($preset)"
  NINJA_STATUS='[%f/%t %es] ' cmake --build --preset "$preset" "${args[@]}" >&2
}
