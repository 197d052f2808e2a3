# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# topolet beside other plugins of a runtime's NRI, tried with containers of containerd and of CRI-O.

kEchoProgram=build/quick/tests/fronts/nri_echo_plugin

run_nri() {
  local front=$kFront
  kFront=cri
  nri_frames
  nri_guard_story containerd
  nri_guard_story crio
  kFront=$front
  if [[ $kFront == nri ]]; then
    nri_front_story containerd
    nri_front_story crio
    nri_settings_story containerd
    nri_settings_story crio
    nri_settings_over_cri
    nri_front_restarts
    nri_front_is_preinstalled
    nri_front_kill_run
  fi
  nri=off
}

# The runtime's side of NRI's own Go library against topolet's connection: frames and answers of many sizes.
nri_frames() {
  local frame length result
  say "Exchanging frames with NRI's own multiplexer"
  workdir=$(make_workdir "$$")
  setsid "$kEchoProgram" "$workdir/nri.sock" >>"$logs/nri-frames.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/nri_echo_plugin.pid"
  disown
  timeout 300 nri-frames -socket "$workdir/nri.sock" >"$workdir/frames" 2>>"$logs/nri-frames.log" || true
  while IFS=$'\t' read -r frame length result; do
    note through "nri: frames of $frame bytes, messages of $length" "$result"
  done <"$workdir/frames"
  check through 'nri: frames of all sizes are tried' 0 test "$(wc -l <"$workdir/frames")" = 37
  close_workdir
}

# nri_guard_story RUNTIME: nri.guard = off, warn and deny beside a plugin that sets CPUs.
nri_guard_story() {
  local name="nri guard, $1" kills=0
  say "Setting CPUs by another NRI plugin ($1)"
  open_nri_workdir "$1"
  guard_alone
  guard_warns_of_creates
  guard_warns_of_updates
  guard_denies
  guard_beside_a_late_plugin
  guard_survives_restarts "$1"
  guard_off
  close_workdir
}

# begin_guard RULE: topoletd with that guard, and two CPUs to share or to have alone. It ends with end_guard.
begin_guard() {
  topoletd_options=(--nri.socket="unix://$workdir/nri.sock" --nri.guard="$1")
  start_topoletd
}

end_guard() {
  end_process "$(<"$workdir/topoletd.pid")" topoletd
  mv "$workdir/topoletd.log" "$workdir/topoletd-$((++kills)).log"
}

is_registered() { status_says "guard $1: " && ! status_says 'not connected'; }
mode_is() { [[ $(placed "$1") == "$2 "* ]]; }
holds_nothing() { [[ -z $(placed "$1") ]]; }
clear_pods() {
  local pod
  for pod in "$@"; do
    in_runtime direct remove "$pod" >/dev/null 2>&1 || true
    wait_until 10 holds_nothing "$pod" || true
  done
}

guard_alone() {
  begin_guard warn
  check through "$name: topolet registers" 10 is_registered warn
  tries through run web burstable 500 0 || true
  tries through run trader guaranteed 1000 1000 || true
  check through "$name: without another plugin a container is alone, as the ledger says" 10 sits trader exclusive
  check through "$name: and the other shares" 10 sits web shared
  check through "$name: and nobody is overruled" 0 test -z "$(reasons overruled trader)"
  clear_pods trader
}

# The plugin sets CPUs when a container is created, as dra-driver-cpu does. topolet repairs that once.
guard_warns_of_creates() {
  local about="$name, warn, CPUs set at the create"
  start_nri_plugin adversary -cpus 0-1 -pods once
  check through "$about: it is created" 0 tries through run once guaranteed 1000 1000
  check through "$about: the audit names the plugin" 10 audits overruled once "NRI plugin '10-adversary' sets CPUs 0-1 instead of"
  check through "$about: the log names it" 0 warns once 1
  check through "$about: topolet status names it" 10 status_says 'NRI plugin 10-adversary has set the CPUs of default/once/main'
  check through "$about: topolet explain names it" 10 explains once 'NRI plugin 10-adversary'
  check through "$about: the kernel shows topolet's CPUs again" 20 is_in_its_place once
  in_runtime through -name second run once guaranteed 0 0 >/dev/null 2>&1 || true
  check through "$about: one warning for a pod" 0 warns once 1
  check through "$about: a container that the plugin leaves alone shares" 10 sits web shared
  end_nri_plugin adversary
  clear_pods once
}

# warns POD COUNT: so often the log says that a plugin sets CPUs of the pod.
warns() { (($(lines_in_log "pod default/$1: NRI plugin '10-adversary' sets the CPUs") == $2)); }
is_in_its_place() { [[ $(cpus_in_runtime "$1") == $(placed "$1" | head -n 1 | cut -d ' ' -f 2) ]]; }

# The plugin sets them at updates too, as koordlet and nri-plugins do: topolet does not win.
guard_warns_of_updates() {
  local about="$name, warn, CPUs set at updates too"
  start_nri_plugin adversary -cpus 0-1 -pods again -updates
  check through "$about: it is created" 0 tries through run again guaranteed 1000 1000
  check through "$about: the audit names the plugin" 10 audits overruled again "NRI plugin '10-adversary' sets CPUs 0-1 instead of"
  sleep 12
  check through "$about: it stays where the plugin has it" 0 test "$(cpus_in_runtime again)" = 0-1
  check through "$about: topolet status says so" 10 status_says 'NRI plugin 10-adversary has set the CPUs of default/again/main; it runs on CPUs 0-1'
  check through "$about: it is not called exclusive" 0 mode_is again overruled
  check through "$about: topolet does not fight" 0 has_few_updates again
  end_nri_plugin adversary
  check through "$about: once the plugin is gone, topolet's CPUs are back" 30 is_in_its_place again
  clear_pods again
}

has_few_updates() { (($(grep -c "^update $1" "$workdir/nri-plugin-adversary.log") <= 6)); }

guard_denies() {
  local about="$name, deny"
  end_guard
  begin_guard deny
  check through "$about: topolet registers" 10 is_registered deny
  start_nri_plugin adversary -cpus 0-1 -pods denied
  check through "$about: the create is refused" 0 is_refused through create denied guaranteed 1000 1000
  check through "$about: the error names the plugin" 0 answers "NRI plugin '10-adversary' gives default/denied/main CPUs 0-1 instead of"
  check through "$about: and the way out" 0 answers 'CPUSetAllocator=false'
  check through "$about: the audit has it" 10 audits overruled denied '; refused'
  check through "$about: nothing is held for it" 10 holds_nothing denied
  check through "$about: the next attempt is refused too" 0 is_refused through create denied guaranteed 1000 1000
  check through "$about: the log warns once" 0 warns denied 1
  check through "$about: who is left alone by the plugin is created" 0 tries through run idle besteffort 0 0
  end_nri_plugin adversary
  check through "$about: once the plugin is gone, it is created" 0 tries through run denied guaranteed 1000 1000
  check through "$about: and is alone, as the ledger says" 10 sits denied exclusive
  clear_pods denied idle
}

is_refused() { ! tries "$@"; }

# The runtime gives a plugin two seconds, and then goes on without it: nothing of it is left.
guard_beside_a_late_plugin() {
  local about="$name, a plugin is too late"
  start_nri_plugin adversary -cpus 0-1 -pods late -late 3s
  check through "$about: the create goes on without it" 0 tries through run late guaranteed 1000 1000
  check through "$about: the container is alone, as the ledger says" 10 sits late exclusive
  check through "$about: topolet is still registered" 0 is_registered deny
  end_nri_plugin adversary
  clear_pods late
}

guard_survives_restarts() {
  local about="$name, restarts" process
  tries through run kept guaranteed 1000 1000 || true
  process=$(process_in_runtime kept)
  kill_topoletd
  start_topoletd
  check through "$about: topoletd killed: it registers again" 5 is_registered deny
  check through "$about: topoletd killed: the container is not touched" 0 sits kept exclusive
  # The runtime keeps the dead connection among its validators until the next event.
  check through "$about: topoletd killed: a create succeeds, at the second attempt at the latest" 0 tries_twice through run web2 besteffort 0 0
  restart_topoletd
  check through "$about: topolet restart: the next create succeeds" 0 tries through -name second run web2 besteffort 0 0
  restart_runtime "$1"
  check through "$about: the runtime killed: topolet registers again" 20 is_registered deny
  check through "$about: the runtime killed: the container is not touched" 20 same_process kept "$process"
  start_nri_plugin adversary -cpus 0-1 -pods denied
  check through "$about: the runtime killed: the guard refuses as before" 0 is_refused through create denied-2 burstable 500 0
  check through "$about: the runtime killed: and names the plugin" 0 answers "NRI plugin '10-adversary' gives default/denied-2/main"
  end_nri_plugin adversary
  clear_pods kept web2 denied-2
}

restart_topoletd() {
  of_topolet restart >"$workdir/answer" 2>&1 || true
  note_topoletd
}

# Another process has taken over; its PID is the one to end.
note_topoletd() {
  local process
  process=$(of_topolet status --json 2>/dev/null | sed -n 's/.*"process": *\([0-9]*\).*/\1/p' | head -n 1) || true
  if [[ -n $process ]]; then echo "$process" >"$workdir/topoletd.pid"; fi
}

tries_twice() { tries "$@" || tries "$@"; }

restart_runtime() {
  if [[ $1 == crio ]]; then
    kill_crio
    return
  fi
  kill -KILL "$(<"$workdir/containerd.pid")"
  rm -f "$workdir/nri.sock"
  begin_runtime "$workdir"
  disown "$(<"$workdir/containerd.pid")"
}

guard_off() {
  local about="$name, off" times
  end_guard
  times=$(times_connected topolet-guard)
  begin_guard off
  start_nri_plugin adversary -cpus 0-1 -pods off
  tries through run off guaranteed 1000 1000 || true
  check through "$about: topolet's CPUs come back" 20 is_in_its_place off
  check through "$about: topolet does not register" 0 test "$(times_connected topolet-guard)" = "$times"
  check through "$about: no plugin is named" 0 test -z "$(reasons overruled off | grep adversary)"
  end_nri_plugin adversary
  clear_pods off web
}
