# shellcheck shell=bash
# How the scripts talk: everything for people goes to stderr.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Waits up to SECONDS for a command to succeed.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

[[ -t 2 ]] || say() { printf '==> %s\n' "$*" >&2; }
