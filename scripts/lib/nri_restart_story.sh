# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# topolet as an NRI plugin while topoletd, or the runtime, is restarted.

# The runtime's connection goes to the next topoletd: no create fails, and the runtime notices nothing.
nri_front_restarts() {
  local name="nri front, topolet restart" kills=0 round times creator
  say "Restarting topoletd while containers are made over NRI"
  open_nri_workdir containerd
  start_topoletd
  check through "$name: topolet registers" 10 is_plugin
  times=$(times_connected topolet)
  (for ((round = 1; round <= 30; ++round)); do
    in_runtime direct run "made-$round" guaranteed 1000 1000 >/dev/null 2>>"$workdir/failed-creates" || echo "$round" >>"$workdir/failed"
    in_runtime direct remove "made-$round" >/dev/null 2>&1 || true
  done) &
  creator=$!
  for ((round = 1; round <= 5; ++round)); do
    sleep 1
    check through "$name: another one takes over ($round)" 0 is_restarted
    wait_until 20 taken_over "$round" || true
    note_topoletd
  done
  wait "$creator" || true
  check through "$name: no create fails" 0 test ! -e "$workdir/failed"
  check through "$name: the plugin is the same to the runtime" 0 test "$(times_connected topolet)" = "$times"
  check through "$name: every container had its CPU alone" 0 test "$(lines_in_log 'found in the runtime')" = 0
  close_workdir
}

is_restarted() { "$PWD/$kCommandProgram" restart --config /dev/null --socket "$workdir/control.sock" >>"$workdir/restart.log" 2>&1; }
taken_over() { (($(lines_in_log "NRI: goes on as") >= $1)); }

# The runtime starts the plugin itself, before it serves anybody.
nri_front_is_preinstalled() {
  local name="nri front, pre-installed" kills=0 times
  say "Starting topolet's plugin by the runtime"
  open_nri_workdir containerd
  mkdir -p "$workdir/nri/plugins"
  mkdir -p "$workdir/nri/program"
  cp "$PWD/build/quick/core/fronts/nri/50-topolet" "$workdir/nri/program/"
  echo "$workdir/control.sock.take-over" >"$workdir/nri/program/50-topolet.socket"
  ln -s ../program/50-topolet "$workdir/nri/plugins/"
  start_topoletd
  check through "$name: topolet registers by itself" 10 is_plugin
  in_runtime direct run web burstable 500 0 >/dev/null || true
  times=$(times_connected topolet)
  restart_runtime containerd
  check through "$name, the runtime restarted: a container is created at once" 0 tries direct run first guaranteed 1000 1000
  check through "$name, the runtime restarted: it was placed before its start" 0 test "$(lines_in_log 'first/main: shared')" = 0
  check through "$name, the runtime restarted: it is alone, as the ledger says" 10 sits first exclusive
  check through "$name, the runtime restarted: one plugin" 0 one_plugin
  kill_topoletd
  start_topoletd
  check through "$name, topoletd killed: it connects by itself" 10 status_says "NRI          front: containerd"
  check through "$name, topoletd killed: a container is created" 5 tries direct run second burstable 100 0
  clear_pods web first second
  close_workdir
}

one_plugin() { status_says "it asks the plugins 50-topolet"; }
