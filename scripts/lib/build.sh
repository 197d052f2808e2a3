# shellcheck shell=bash disable=SC2034,SC2154 # constants are shared between the files
# Configures and builds a preset below build/. Prints nothing about what is up to date.

kStoryProgram=build/dev/tests/integration/topolet-story
kKillRunProgram=build/dev/tests/integration/kill_run_test
kDaemonProgram=build/dev/core/topoletd
kCommandProgram=build/dev/core/cli/topolet
kPluginDir=build/dev/plugins

# configure_preset PRESET [CMAKE_OPTION…]
configure_preset() {
  say "Configuring the $1 build"
  cmake --preset "$@" >&2
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
