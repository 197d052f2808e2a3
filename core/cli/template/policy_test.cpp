// Asks the policy as topoletd does, without topoletd, on a machine that is made up.
#include <cstdio>
#include <topolet/testing.hpp>

using namespace topolet::sdk::testing;

namespace {

int g_failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++g_failures;
}

void test_scores_free_cpus() {
  const Machine machine("pack:2 numa:1 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_exclusive({.pod_uid = "other"}, set_of({0, 1}));
  const Request request(machine, ledger, {.cpu_request_milli = 2000}, 2);
  FakeHost host;
  Plugin policy(topolet_plugin_v1, host, {{"most", "10"}});

  const std::vector<Verdict> verdicts = policy.score(request);
  const Verdict& half_taken = verdicts.at(request.position(set_of({0})));
  const Verdict& all_free = verdicts.at(request.position(set_of({1})));
  expect(half_taken.score == 5, "a node that is half taken gets half of it");
  expect(half_taken.reason == "2 CPUs are free", "the reason says what is free");
  expect(all_free.score == 10, "a free node gets the highest score");
}

}  // namespace

int main() {
  try {
    test_scores_free_cpus();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
