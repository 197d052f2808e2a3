# shellcheck shell=bash
# Messages of the scripts: everything for people goes to standard error.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# wait_until SECONDS COMMAND… : waits until the command succeeds; fails after SECONDS.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

[[ -t 2 ]] || say() { printf '==> %s\n' "$*" >&2; }
