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

const Container kJob = {.pod_uid = "1", .qos = TOPOLET_QOS_BESTEFFORT};
const Container kSolver = {.pod_uid = "2", .cpu_request_milli = 6000};

void test_sends_containers_without_requests_to_the_background() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Request request(machine, ledger, kJob, 0);
  FakeHost host;
  Plugin background(topolet_plugin_v1, host, {{"nice", "15"}});
  const Adjusted told = background.adjust(request, 0, set_of({0, 1, 4, 5}));
  expect(told.scheduler && told.scheduler->scheduler_class == TOPOLET_SCHEDULER_BATCH, "it is a batch job");
  expect(told.scheduler && told.scheduler->nice == 15, "as nice as the option says");
  expect(told.io_priority && told.io_priority->io_class == TOPOLET_IO_IDLE, "its I/O waits for that of others");
  expect(!told.memory_policy, "its memory is as it was");
  const Adjusted later = background.adjust(request, 0, set_of({0, 1}), TOPOLET_ASKS_UPDATE);
  expect(!later.scheduler && !later.io_priority, "a running container is left alone");
}

void test_spreads_the_memory_of_wide_containers() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Request request(machine, ledger, kSolver, 6);
  FakeHost host;
  Plugin background(topolet_plugin_v1, host);
  const Adjusted wide = background.adjust(request, 0, set_of({0, 1, 2, 3, 4, 5}));
  expect(wide.memory_policy && wide.memory_policy->mode == TOPOLET_MEMORY_WEIGHTED_INTERLEAVE, "over its nodes");
  expect(wide.memory_policy && wide.memory_policy->nodes == set_of({0, 1}), "those of its CPUs");
  expect(!wide.scheduler && !wide.io_priority, "it has CPUs of its own");
  expect(!background.adjust(request, 0, set_of({0, 1, 2})).memory_policy, "one node needs no policy");
}

void test_goes_without_where_nothing_can_be_set() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Request request(machine, ledger, kJob, 0);
  FakeHost host;
  Plugin background(topolet_plugin_v1, host);
  background.is_front_nri = false;
  const Adjusted told = background.adjust(request, 0, set_of({0, 1}));
  expect(!told.scheduler && !told.io_priority, "the CRI has no such thing");
  expect(told.reason == "cannot run in the background through this front end and runtime", "and the reason says so");
}

}  // namespace

int main() {
  try {
    test_sends_containers_without_requests_to_the_background();
    test_spreads_the_memory_of_wide_containers();
    test_goes_without_where_nothing_can_be_set();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
