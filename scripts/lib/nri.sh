# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# The Node Resource Interface (NRI) of a private runtime, its plugins, and topolet beside or as one of them.

# off: the runtime has no NRI, unless topolet's front end needs it. on: it listens on WORKDIR/nri.sock.
nri=off
# The plugins without which the runtime creates no container.
nri_required=()
# topolet's front end, which is tested: cri, or nri.
kFront=cri

# nri_of_containerd WORKDIR: prints the section of containerd's configuration.
nri_of_containerd() {
  if [[ $nri == off && $kFront == cri ]]; then
    printf '[plugins."io.containerd.nri.v1.nri"]\n  disable = true\n'
    return
  fi
  nri_section deploy/nri/containerd.toml "$1"
  if ((${#nri_required[@]} > 0)); then
    cat <<TOML
  [plugins."io.containerd.nri.v1.nri".default_validator]
    enable = true
    required_plugins = [$(quoted_list "${nri_required[@]}")]
TOML
  fi
}

# nri_of_crio WORKDIR: the same of CRI-O's.
nri_of_crio() {
  if [[ $nri == off && $kFront == cri ]]; then
    printf '[crio.nri]\nenable_nri = false\n'
    return
  fi
  nri_section deploy/nri/crio.conf "$1"
  if ((${#nri_required[@]} > 0)); then
    cat <<TOML
[crio.nri.default_validator]
nri_enable_default_validator = true
nri_validator_required_plugins = [$(quoted_list "${nri_required[@]}")]
TOML
  fi
}

# nri_section FILE WORKDIR: prints what a node gets, with the places below WORKDIR.
nri_section() { sed -n '/^\[/,$p' "$1" | sed "s|/var/run/nri/|$2/|; s|/opt/nri/|$2/nri/|; s|/etc/nri/|$2/nri/|"; }

quoted_list() {
  local separator='' item
  for item in "$@"; do
    printf '%s"%s"' "$separator" "$item"
    separator=', '
  done
}

# open_nri_workdir RUNTIME: containerd or crio, with NRI; closed by close_workdir.
open_nri_workdir() {
  nri=on
  if [[ $1 == crio ]]; then
    open_other_workdir crio
  else
    open_workdir
    image=$kBusyboxImage
    make_pods_cgroup
  fi
}

runtime_log() { if [[ -n ${runtime-} ]]; then echo "$workdir/runtime.log"; else echo "$workdir/containerd.log"; fi; }

# start_nri_plugin NAME OPTION…: returns when the runtime asks the plugin. Its lines are in WORKDIR/nri-plugin-NAME.log.
start_nri_plugin() {
  local name=$1 times
  shift
  times=$(times_connected "$name")
  setsid nri-plugin -socket "$workdir/nri.sock" -name "$name" "$@" >>"$workdir/nri-plugin-$name.log" 2>&1 </dev/null &
  echo "$!" >"$workdir/nri-plugin-$name.pid"
  disown
  wait_until 10 has_connected "$name" "$times" || die "the NRI plugin $name was not connected; see $(runtime_log)"
}

times_connected() { grep -c "$1.*connected and synchronized" "$(runtime_log)" || true; }
has_connected() { (($(times_connected "$1") > $2)); }

end_nri_plugin() { end_process "$(<"$workdir/nri-plugin-$1.pid")" nri-plugin; }

# of_topolet COMMAND…: of the command topolet, about the topoletd that runs.
of_topolet() { "$PWD/$kCommandProgram" "$@" --config /dev/null --socket "$workdir/control.sock" --state-dir "$workdir/state-of-topolet"; }
status_says() { of_topolet status 2>/dev/null | grep -qF -- "$1"; }
explains() { of_topolet explain "default/$1" 2>/dev/null | grep -qF -- "$2"; }

# reasons EVENT POD: prints those that the audit has.
reasons() {
  sqlite3 -readonly "$workdir/state-of-topolet/state.db" \
    "SELECT reason FROM decided WHERE event = '$1' AND pod_name = '$2' ORDER BY decision"
}
audits() { reasons "$1" "$2" | grep -qF -- "$3"; }

# lines_in_log TEXT: how many of topoletd's lines have it, of all its lives in this workdir.
lines_in_log() { cat "$workdir"/topoletd*.log | grep -cF -- "$1" || true; }

# tries WAY COMMAND…: of the program container; its words are in WORKDIR/answer.
tries() { in_runtime "$@" >"$workdir/answer" 2>&1; }
answers() { grep -qF -- "$1" "$workdir/answer"; }
