# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# topolet as an NRI plugin of the runtime (daemon.front = nri), tried with containers of containerd and of CRI-O.

# How often topoletd is killed while containers come and go.
kFrontKills=${TOPOLET_KILLS:-30}
# How many containers with exclusive CPUs are created one after the other.
kFrontCreates=20

# nri_front_story RUNTIME
nri_front_story() {
  local name="nri front, $1" kills=0
  say "Placing containers over NRI ($1)"
  topoletd_options=()
  open_nri_workdir "$1"
  start_topoletd
  check through "$name: topolet registers" 10 is_plugin
  tries direct run web burstable 500 0 || true
  check through "$name: a Burstable container shares, as the ledger says" 10 sits web shared
  front_moves_neighbours_first
  front_is_killed_between_events
  front_finds_what_was_made_without_it
  front_beside_another_plugin "$1"
  front_survives_the_runtime "$1"
  clear_pods web
  check through "$name: all CPUs come back" 20 holds_none
  close_workdir
  front_is_required "$1"
}

is_plugin() { (($(times_connected topolet) > 0)); }

# Of a container that is created and not started, the CPUs are in the ledger. Nobody else may be on them from the answer
# to its create on.
front_moves_neighbours_first() {
  local round id beside=0 failed=0
  for ((round = 1; round <= kFrontCreates; ++round)); do
    if ! id=$(in_runtime direct create "first-$round" guaranteed 1000 1000 2>>"$workdir/answer"); then
      failed=$((failed + 1))
      continue
    fi
    if [[ ,$(cpus_in_runtime web), == *,"$(placed "first-$round" | cut -d ' ' -f 2)",* || $(cpus_in_runtime web) == *-* ]]; then
      beside=$((beside + 1))
    fi
    in_runtime direct start "$id" || failed=$((failed + 1))
    sits "first-$round" exclusive || wait_until 5 sits "first-$round" exclusive || failed=$((failed + 1))
    in_runtime direct remove "first-$round" || failed=$((failed + 1))
  done
  check through "$name: neighbours have left before the create is answered ($kFrontCreates creates)" 0 test "$beside" = 0
  check through "$name: the newcomers are alone, as the ledger says" 0 test "$failed" = 0
  check through "$name: and the neighbour has all CPUs again" 20 sits web shared
}

# Between any two of the events of a container's life.
front_is_killed_between_events() {
  local id
  revive() {
    kill_topoletd
    start_topoletd
  }
  in_runtime direct run early guaranteed 1000 1000 >/dev/null || true
  revive
  check through "$name, killed after a start: as before" 10 sits early exclusive
  in_runtime direct remove early || true
  revive
  check through "$name, killed after a removal: all CPUs come back" 20 sits web shared
  id=$(in_runtime direct create halfway guaranteed 1000 1000) || true
  revive
  check through "$name, killed after a create: it starts" 0 in_runtime direct start "$id"
  check through "$name, killed after a create: it is alone, as the ledger says" 10 sits halfway exclusive
  check through "$name, killed after a create: the neighbour is elsewhere" 10 is_apart halfway
  in_runtime direct stop "$id" || true
  revive
  in_runtime direct remove halfway || true
  check through "$name, killed after a stop: all CPUs come back" 20 sits web shared
  clear_pods early
}

is_apart() { [[ $(cpus_in_runtime web) != *"$(cpus_in_runtime "$1")"* && $(cpus_in_runtime web) != *-* ]]; }

# Without required_plugins the runtime creates containers while topoletd is away.
front_finds_what_was_made_without_it() {
  in_runtime direct run kept guaranteed 1000 1000 >/dev/null || true
  kill_topoletd
  in_runtime direct run unseen burstable 300 0 >/dev/null || true
  start_topoletd
  check through "$name: a container made without topolet is found" 10 sits unseen shared
  check through "$name: and leaves the CPUs of others" 10 sits kept exclusive
  clear_pods kept unseen
}

# Two plugins that set the CPUs of one container fail its create.
front_beside_another_plugin() {
  start_nri_plugin adversary -cpus 0-1 -pods both
  check through "$name, two plugins: the create fails" 0 is_refused direct create both guaranteed 1000 1000
  check through "$name, two plugins: the error names the other one" 0 answers adversary
  # CRI-O does not say that the create has failed: the next one of the same container tells.
  if [[ $1 == containerd ]]; then check through "$name, two plugins: nothing is held" 10 holds_nothing both; fi
  end_nri_plugin adversary
  check through "$name, two plugins: once it is gone, the container is created" 0 tries direct run both guaranteed 1000 1000
  check through "$name, two plugins: and is alone, as the ledger says" 10 sits both exclusive
  clear_pods both
}

# The runtime is killed while containers are made.
front_survives_the_runtime() {
  local creator round pod times
  (for ((round = 1; round <= 15; ++round)); do
    in_runtime direct run "hammered-$round" besteffort 0 0 || true
  done >/dev/null 2>&1) &
  creator=$!
  for ((round = 1; round <= 3; ++round)); do
    sleep 1
    times=$(times_connected topolet)
    restart_runtime "$1"
    check through "$name, the runtime killed: topolet registers again ($round)" 10 has_connected topolet "$times"
  done
  wait "$creator" || true
  check through "$name, the runtime killed: all that run are where the ledger has them" 30 all_sit
  for ((round = 1; round <= 15; ++round)); do clear_pods "hammered-$round"; done
}

all_sit() {
  local pod
  for pod in $(sqlite3 -readonly "$workdir/state-of-topolet/state.db" 'SELECT pod FROM current_placements'); do
    [[ -z $(process_in_runtime "$pod") ]] || sits "$pod" shared || return 1
  done
}

# With required_plugins no container is created without topolet.
front_is_required() {
  local name="nri front, $1, required" kills=0
  nri_required=(topolet)
  open_nri_workdir "$1"
  check through "$name: without topolet nothing is created" 0 is_refused direct create none burstable 100 0
  start_topoletd
  check through "$name: topolet registers" 10 is_plugin
  check through "$name: with it, a container is created" 5 tries direct run web burstable 500 0
  kill_topoletd
  check through "$name: topoletd killed: nothing is created" 0 is_refused direct create none burstable 100 0
  start_topoletd
  check through "$name: topoletd is back: a container is created" 10 tries direct run trader guaranteed 1000 1000
  check through "$name: and is alone, as the ledger says" 10 sits trader exclusive
  close_workdir
  nri_required=()
}

# Pods come and go, topoletd is killed again and again, and whoever has a CPU alone has it alone at any moment.
nri_front_kill_run() {
  say "Killing topoletd $kFrontKills times while containers come and go over NRI"
  if TOPOLET_FRONT=nri TOPOLET_NRI_RUNTIME=$cache TOPOLET_NRI_REQUIRED=topolet TOPOLET_KILLS=$kFrontKills \
    build/quick/tests/integration/kill_run_test >"$logs/nri-kill-run.log" 2>&1; then
    note through "nri front: $kFrontKills kills, no CPU is shared that somebody has alone" PASS
  else
    note through "nri front: $kFrontKills kills, no CPU is shared that somebody has alone" FAIL
    tail -n 30 "$logs/nri-kill-run.log" >&2
  fi
}
