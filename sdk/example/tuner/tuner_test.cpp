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

const Container kContainer = {.pod_uid = "1", .name = "main", .pod_name = "solver", .cpu_request_milli = 3000};

void test_tells_the_number_of_cpus() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Request request(machine, ledger, kContainer, 3);
  FakeHost host;
  Plugin tuner(topolet_plugin_v1, host);
  const Adjusted told = tuner.adjust(request, 0, set_of({0, 1, 2}));
  expect(told.env.at("OMP_NUM_THREADS") == "3", "as many threads as CPUs");
  expect(told.tags.at("tuner/threads") == "3", "all policies may know that");
  expect(tuner.adjust(request, 0, set_of({0, 1}), TOPOLET_ASKS_UPDATE).env.empty(), "a running container is not told");
}

void test_begins_to_reclaim_before_the_limit() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  FakeHost host;
  Plugin tuner(topolet_plugin_v1, host);
  Container limited = kContainer;
  limited.memory_request_bytes = 1000;
  const Request request(machine, ledger, limited, 3);
  for (const topolet_asks asked : {TOPOLET_ASKS_CREATE, TOPOLET_ASKS_UPDATE})
    expect(tuner.adjust(request, 0, set_of({0, 1, 2}), asked).unified.at("memory.high") == "900", "nine tenths");
  Container without_limit = kContainer;
  without_limit.memory_request_bytes = 0;
  const Request unlimited(machine, ledger, without_limit, 3);
  expect(tuner.adjust(unlimited, 0, set_of({0, 1, 2})).unified.empty(), "without a limit there is nothing to set");
}

void test_sees_moves() {
  const Machine machine("numa:2 core:4 pu:1");
  FakeHost host;
  Plugin tuner(topolet_plugin_v1, host);
  tuner.notify(TOPOLET_EVENT_PLACED, machine, kContainer, set_of({0, 1, 2}));
  expect(host.state.at("1/main") == "3", "what it was told is kept");
  tuner.notify(TOPOLET_EVENT_MOVED, machine, kContainer, set_of({4, 5, 6}));
  expect(host.log.empty(), "as many CPUs elsewhere change nothing");
  tuner.notify(TOPOLET_EVENT_MOVED, machine, kContainer, set_of({4, 5}));
  expect(host.log.size() == 1 && host.log.at(0) == "solver/main: OMP_NUM_THREADS is 3, but it has 2 CPUs now",
         "fewer CPUs are a warning");
  tuner.notify({.kind = TOPOLET_EVENT_PLACED, .cpus = set_of({4, 5}), .flags = TOPOLET_EVENT_ADOPTED}, machine,
               kContainer);
  expect(host.state.at("1/main") == "3", "a restart of topoletd tells the container nothing");
  tuner.notify(TOPOLET_EVENT_RELEASED, machine, kContainer, set_of({4, 5}));
  expect(host.state.empty(), "nothing is left of a container that is gone");
}

}  // namespace

int main() {
  try {
    test_tells_the_number_of_cpus();
    test_begins_to_reclaim_before_the_limit();
    test_sees_moves();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
