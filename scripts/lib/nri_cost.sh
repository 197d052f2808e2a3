# shellcheck shell=bash disable=SC2034,SC2154 # constants and workdir are shared between the files
# What topolet adds to a create and a start in containerd, beside an NRI plugin in Go that sets a fixed cpuset.

kCostRounds=8
# Containers of each kind, round and way; the first ones of them are not counted.
kCostContainers=23
kCostUncounted=3

declare -A kCostWays=(
  [direct]='nothing between'
  [go-plugin]='an NRI plugin in Go sets fixed CPUs'
  [cri]='topolet as CRI front end, nri.guard = off'
  [cri-guard]='topolet as CRI front end, nri.guard = warn'
  [nri]='topolet as NRI front end'
)
declare -A kCostKinds=([shared]='burstable 100 0' [exclusive]='guaranteed 1000 1000')

run_nri-cost() {
  local round way front=$kFront ways=(direct go-plugin cri cri-guard)
  if [[ $kFront == nri ]]; then ways+=(nri); fi
  say "Measuring creates and starts (${ways[*]})"
  open_nri_workdir containerd
  for ((round = 1; round <= kCostRounds; ++round)); do
    while read -r way; do measure_cost "$way" "$round"; done < <(printf '%s\n' "${ways[@]}" | shuf)
  done
  print_costs "${ways[@]}"
  cp "$workdir/costs" "$logs/nri-costs"
  close_workdir
  nri=off kFront=$front
}

# measure_cost WAY ROUND: appends "KIND WAY ROUND CREATE_US START_US" lines to WORKDIR/costs.
measure_cost() {
  local way=$1 round=$2 kind client=direct
  begin_cost_way "$way"
  if [[ $way == cri* ]]; then client=through; fi
  for kind in "${!kCostKinds[@]}"; do
    # shellcheck disable=SC2086 # three words
    in_runtime "$client" time "cost-$way-$round-$kind" ${kCostKinds[$kind]} "$kCostContainers" |
      tail -n "+$((kCostUncounted + 1))" | sed "s/^/$kind $way $round /" >>"$workdir/costs"
  done
  end_cost_way "$way"
}

begin_cost_way() {
  kFront=cri topoletd_options=(--nri.socket="unix://$workdir/nri.sock")
  case $1 in
    go-plugin) start_nri_plugin fixed -cpus 0 ;;
    cri) topoletd_options+=(--nri.guard=off) ;;
    cri-guard) topoletd_options+=(--nri.guard=warn) ;;
    nri) kFront=nri topoletd_options=() ;;
  esac
  if [[ $1 == *cri* || $1 == nri ]]; then start_topoletd; fi
  case $1 in
    cri-guard) wait_until 10 is_registered warn || die "topolet did not register with the runtime; see $workdir/topoletd.log" ;;
    nri) wait_until 10 status_says containerd || die "topolet did not register with the runtime; see $workdir/topoletd.log" ;;
  esac
}

end_cost_way() {
  if [[ $1 == go-plugin ]]; then end_nri_plugin fixed; fi
  if [[ $1 == *cri* || $1 == nri ]]; then end_process "$(<"$workdir/topoletd.pid")" topoletd; : >"$workdir/topoletd.log"; fi
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# cost KIND WAY ROUND COLUMN: the median, in microseconds; ROUND may be a pattern.
cost() { awk -v k="$1" -v w="$2" -v r="$3" -v c="$4" '$1 == k && $2 == w && $3 ~ "^" r "$" { print $c }' "$workdir/costs" | median; }

# added KIND WAY COLUMN: what the way adds to the median of direct calls of the same round; the median over the rounds.
added() {
  local round
  for ((round = 1; round <= kCostRounds; ++round)); do
    awk -v a="$(cost "$1" "$2" "$round" "$3")" -v b="$(cost "$1" direct "$round" "$3")" 'BEGIN { print a - b }'
  done | median
}

# beside_go KIND WAY COLUMN: how many times as much the way adds as the plugin in Go does; "-" where that adds nothing.
beside_go() { awk -v a="$(added "$1" "$2" "$3")" -v b="$(added "$1" go-plugin "$3")" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }'; }

print_costs() {
  local kind way
  for kind in shared exclusive; do
    printf '\n%s containers (%s), %d of each way in %d rounds; milliseconds, and how many times the Go plugin'"'"'s addition\n' \
      "$kind" "${kCostKinds[$kind]}" "$(((kCostContainers - kCostUncounted) * kCostRounds))" "$kCostRounds"
    printf '%-46s %8s %8s %8s %8s %8s %8s\n' WAY CREATE ADDED 'TIMES GO' START ADDED 'TIMES GO'
    for way in "$@"; do
      printf '%-46s %8s %8s %8s %8s %8s %8s\n' "${kCostWays[$way]}" \
        "$(cost "$kind" "$way" '.*' 4 | in_ms)" "$(added "$kind" "$way" 4 | in_ms)" "$(beside_go "$kind" "$way" 4)" \
        "$(cost "$kind" "$way" '.*' 5 | in_ms)" "$(added "$kind" "$way" 5 | in_ms)" "$(beside_go "$kind" "$way" 5)"
    done
  done
}

in_ms() { awk '{ printf "%.2f", $1 / 1000 }'; }
