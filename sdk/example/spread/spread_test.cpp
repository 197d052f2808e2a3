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

Container replica(const std::string& uid) {
  return {.pod_uid = uid, .cpu_request_milli = 1000, .pod_labels = {{"app", "web"}}};
}

std::vector<Verdict> ask(const Ledger& ledger, const Machine& machine, const Container& container) {
  FakeHost host;
  Plugin spread(topolet_plugin_v1, host, {{"points", "10"}});
  return spread.score(Request(machine, ledger, container, 1));
}

void test_counts_pods_of_the_service() {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_exclusive(replica("1"), set_of({0}));
  ledger.place_exclusive(replica("2"), set_of({1})).entry_flags(TOPOLET_ENTRY_PENDING);
  ledger.place_exclusive({.pod_uid = "3", .pod_labels = {{"app", "batch"}}}, set_of({4}));
  ledger.place_exclusive({.pod_uid = "4", .pod_namespace = "other", .pod_labels = {{"app", "web"}}}, set_of({5}));
  const std::vector<Verdict> verdicts = ask(ledger, machine, replica("5"));
  expect(verdicts.at(0).score == -20, "both replicas count, also the one that is not created yet");
  expect(verdicts.at(0).reason == "other pods with app=web here: 2", "the reason says how many there are");
  expect(verdicts.at(1).score == 0, "other services and namespaces do not count");
  expect(ask(ledger, machine, replica("1")).at(0).score == -10, "a pod is no replica of itself");
}

void test_abstains_without_the_label() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  expect(ask(ledger, machine, {.cpu_request_milli = 1000}).at(0).kind == TOPOLET_VERDICT_ABSTAIN, "no label, no vote");
}

}  // namespace

int main() {
  try {
    test_counts_pods_of_the_service();
    test_abstains_without_the_label();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
