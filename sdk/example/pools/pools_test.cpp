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

Container member(const std::string& uid, const std::string& pool, std::int64_t milli) {
  return {.pod_uid = uid, .qos = TOPOLET_QOS_BURSTABLE, .cpu_request_milli = milli, .settings = {{"pool", pool}}};
}

struct Asked {
  std::vector<Verdict> verdicts;
  Picked picked;
};

Asked ask(const Machine& machine, const Ledger& ledger, const Container& container, std::size_t candidate) {
  FakeHost host;
  Plugin pools(topolet_plugin_v1, host);
  const Request request(machine, ledger, container, 0);
  return {pools.score(request), pools.pick(request, candidate)};
}

void test_a_pool_has_what_it_requests() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Picked picked = ask(machine, ledger, member("1", "db", 1500), 0).picked;
  expect(picked.narrow == set_of({0, 1}), "1.5 CPUs are two");
  expect(picked.reason == "pool 'db' has CPUs 0-1", "the reason names the pool");
  expect(!ask(machine, ledger, {.pod_uid = "2"}, 0).picked.narrowed, "without a pool it says nothing");
}

void test_pools_grow_and_have_no_cpu_in_common() {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_shared(member("1", "db", 1500), set_of({0, 1}));
  ledger.place_shared(member("2", "web", 1000), set_of({2}));
  const Asked asked = ask(machine, ledger, member("3", "db", 1500), 0);
  expect(asked.picked.narrow == set_of({0, 1, 3}), "it keeps its CPUs and leaves those of the other");
  expect(asked.verdicts.at(0).score == 50 && asked.verdicts.at(1).score == 0, "it stays on its node");
  expect(asked.verdicts.at(0).code.empty() && asked.verdicts.at(1).code == "elsewhere", "a program sees why");
  const Verdict full = ask(machine, ledger, member("3", "web", 2500), 0).verdicts.at(0);
  expect(full.score == 0 && full.code == "no-room", "here is no room for three CPUs");
}

void test_the_others_grow_with_the_newcomer() {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_shared(member("1", "db", 1500), set_of({0, 1}));
  ledger.place_shared(member("2", "web", 1000), set_of({3}));
  FakeHost host;
  Plugin pools(topolet_plugin_v1, host);
  const Request request(machine, ledger, member("3", "db", 1500), 0);
  const std::vector<Wish> replaced = pools.pick(request, 0, set_of({0, 1, 2})).replace;
  expect(replaced.size() == 1 && replaced.at(0).entry == 0, "the other one of the pool is placed anew with it");
  expect(pools.pick(request, 0, set_of({0, 1})).replace.empty(), "nobody is where nothing changes");
}

void test_the_others_follow() {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_shared(member("1", "db", 1500), set_of({0, 1}));
  ledger.place_shared(member("2", "db", 1500), set_of({0, 1, 2}));
  FakeHost host;
  Plugin pools(topolet_plugin_v1, host);
  const std::vector<Wish> wishes = pools.tick(machine, ledger, 0);
  expect(wishes.size() == 1 && wishes.at(0).entry == 0, "only the one that has too little");
  expect(wishes.at(0).reason == "pool 'db' has CPUs 0-2 now", "the reason says what the pool has");
}

}  // namespace

int main() {
  try {
    test_a_pool_has_what_it_requests();
    test_pools_grow_and_have_no_cpu_in_common();
    test_the_others_grow_with_the_newcomer();
    test_the_others_follow();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
