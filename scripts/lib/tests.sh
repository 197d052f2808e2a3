# shellcheck shell=bash disable=SC2034,SC2154 # failed, summaries and flaky_file belong to the script that runs tests
# Runs tests with ctest, and those that failed once more, alone. The script declares these:
#
#   summaries=()   what is printed at the end
#   failed=no      yes once a test has failed for good
#   flaky_tests=() those that failed and then passed
#   flaky_file=    is written with their names

kMostFlakyTests=2
# So many at once are not an accident, and running each of them again would only take long.
kMostRunAgain=10

# run_ctest PRESET [CTEST_OPTION…]: prints all output as it comes, and keeps what failed and the totals for the end. It fails
# if there is no such test, too.
run_ctest() {
  local preset=$1 log code=0 names name
  local failed_log=build/$preset/Testing/Temporary/LastTestsFailed.log
  shift
  log=$(mktemp)
  say "Running the tests ($preset)"
  rm -f "$failed_log"
  ctest --preset "$preset" --no-tests=error "$@" 2>&1 | tee "$log" || code=$?
  summaries+=("$preset: $(sed -n '/tests passed\|No tests were found/,$p' "$log")")
  rm -f "$log"
  ((code != 0)) || return 0
  # A line is "NUMBER:NAME".
  mapfile -t names < <(sed 's/^[0-9]*://' "$failed_log" 2>/dev/null)
  if ((${#names[@]} == 0 || ${#names[@]} > kMostRunAgain)); then
    failed=yes
  else
    for name in "${names[@]}"; do run_again "$preset" "$name"; done
  fi
}

# run_again PRESET NAME: a test that passes alone, at the first or second try, is noted as flaky, and fails otherwise.
run_again() {
  local preset=$1 name=$2 try
  for try in first second; do
    say "Running $name again, alone ($try of two times)"
    # The pattern is the whole name; what has a meaning in patterns is taken literally.
    if ctest --preset "$preset" --no-tests=error --tests-regex "^$(sed 's/[][\.*^$+?(){}|/]/\\&/g' <<<"$name")\$"; then
      flaky_tests+=("$preset $name")
      return
    fi
  done
  summaries+=("$preset: FAILED three times: $name")
  failed=yes
}

# report_flaky_tests: names them, and fails the run if there are too many.
report_flaky_tests() {
  rm -f "$flaky_file"
  ((${#flaky_tests[@]} > 0)) || return 0
  mkdir -p "${flaky_file%/*}"
  printf '%s\n' "${flaky_tests[@]}" >"$flaky_file"
  summaries+=("${flaky_tests[@]/#/FLAKY }")
  if ((${#flaky_tests[@]} > kMostFlakyTests)); then
    summaries+=("More than $kMostFlakyTests tests failed and then passed alone, which fails the run. Their names are in $flaky_file")
    failed=yes
  fi
}
