#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

namespace topolet::sdk::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SdkMachine, IsReadFromASyntheticString) {
  const Machine machine("pack:2 numa:2 l3:1 core:2 pu:2");
  const topolet_topology& topology = machine.view();
  EXPECT_EQ(topology.pu_count, 16U);
  EXPECT_EQ(pus(topology)[5].core, 2U);
  EXPECT_EQ(pus(topology)[5].node, 1U);
  EXPECT_EQ(pus(topology)[15].package, 1U);
  EXPECT_EQ(topology.l3_count, 4U);
  EXPECT_EQ(topology.domain_count, 4U + 2U + 1U);
  EXPECT_EQ(topology.distances[1], 20U);
  EXPECT_EQ(caches(topology)[0].level, 3U);
  EXPECT_THROW(Machine("shoe:2"), std::invalid_argument);
}

TEST(SdkMachine, TakesDevices) {
  Machine machine("numa:2 core:2 pu:1");
  machine.device({.name = "nvml0", .address = "0000:40:00.0", .nodes = set_of({1}), .info = {{"NVIDIAUUID", "GPU-1"}}});
  machine.device({.name = "card0", .address = "0000:40:00.0", .nodes = set_of({1})});
  const topolet_topology& topology = machine.view();
  ASSERT_EQ(topology.os_device_count, 2U);
  EXPECT_EQ(topology.pci_device_count, 1U);
  EXPECT_EQ(topology.pci_bridge_count, 1U);
  EXPECT_EQ(Set(os_devices(topology)[0].cpus).to_string(), "2-3");
  EXPECT_EQ(value_of(os_devices(topology)[0].info, "NVIDIAUUID"), "GPU-1");
  EXPECT_EQ(os_devices(topology)[1].pci_device, 0U);
}

TEST(SdkLedger, TakesWhatIsPlacedOutOfThePool) {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.reserve(set_of({0}))
      .place_exclusive({.name = "a", .cpu_request_milli = 2000, .memory_request_bytes = 8}, set_of({4, 5}), set_of({6}),
                       set_of({0}));
  ledger.place_shared({.name = "b", .cpu_request_milli = 1000}, set_of({3, 7}));
  EXPECT_EQ(Set(ledger.view().pool).to_string(), "1-3,7");
  EXPECT_EQ(Set(ledger.view().withheld).to_string(), "6");
  ASSERT_EQ(ledger.view().entry_count, 2U);
  EXPECT_EQ(text(entries(ledger.view())[0].container_name), "a");
  EXPECT_EQ(node_demands(ledger.view())[1].exclusive_cpus, 2U);
  EXPECT_EQ(node_demands(ledger.view())[1].cpu_request_milli, 2500);
  EXPECT_EQ(node_demands(ledger.view())[0].memory_request_bytes, 8);
  EXPECT_THROW(ledger.place_exclusive({}, set_of({4})), std::logic_error);
}

TEST(SdkRequest, HasTheDomainsAsCandidates) {
  Machine machine("numa:3 core:2 pu:1");
  machine.distances({10, 21, 31, 21, 10, 21, 31, 21, 10});
  Ledger ledger(machine);
  ledger.place_exclusive({}, set_of({0}));
  Request request(machine, ledger, {}, 2);
  request.candidate(set_of({0, 2}));
  ASSERT_EQ(request.view().candidate_count, 5U);
  EXPECT_EQ(Set(candidates(request.view())[0].usable).to_string(), "1");
  const topolet_candidate& both = candidates(request.view())[request.position(set_of({0, 2}))];
  EXPECT_EQ(both.is_domain, 0U);
  EXPECT_EQ(both.distance, 82U);
  EXPECT_EQ(Set(both.cpus).to_string(), "0-1,4-5");
}

/// Does a little of everything.
class Everything {
 public:
  static constexpr std::array<topolet_str, 2> kAnnotations = {{TOPOLET_STR("mood"), TOPOLET_STR("taste")}};
  static constexpr std::array<topolet_kv, 2> kTakingAnnotations = {
      {{TOPOLET_STR("mood"), TOPOLET_STR("greedy")}, {TOPOLET_STR("taste"), {nullptr, 0}}}};

  static constexpr std::array<topolet_kv, 2> kCodes = {{{TOPOLET_STR("tasty"), TOPOLET_STR("It is to its taste.")},
                                                        {TOPOLET_STR("not-these"), TOPOLET_STR("It wants others.")}}};

  Everything(const Options& options, const Host& host) : host_(host) {
    host_.set("mood", options["mood"]);
    host_.log(TOPOLET_LOG_INFO, "here");
  }
  void score(const topolet_request&, Scores& scores) const {
    if (host_.set("mood", "bad") != TOPOLET_FORBIDDEN) throw std::runtime_error("wrote");
    scores.score(0, host_.get("mood") == "good" ? 7 : 101, "taste");
    scores.code(0, "tasty");
  }
  void propose(const topolet_request& request, Proposals& proposals) const {
    proposals.nodes(candidates(request)[1].nodes);
  }
  void pick(const topolet_pick_request& request, Picks& picks) const {
    picks.withhold(request.usable);
    picks.at_least(request.usable, request.count);
    if (size_of(request.chosen) == 0) return;
    picks.reject("not these");
    picks.code("not-these");
    if (request.request->ledger->entry_count > 0) picks.replace(0, TOPOLET_REPLACE_OTHER_NODES, "with it");
  }
  void adjust(const topolet_adjust_request& request, Adjustments& adjustments) const {
    adjustments.mems(request.memory);
    adjustments.env("A", "1");
    adjustments.annotation("b", "2");
    adjustments.reason("why not");
  }
  void notify(const topolet_event& event) const {
    if (event.kind == TOPOLET_EVENT_RELEASED) throw std::runtime_error("sorry to hear it");
    host_.set(text(event.workload->container_name), "seen");
  }
  std::uint32_t interval_ms() const { return 500; }
  void tick(const topolet_tick_request& request, Wishes& wishes) const {
    if (request.ledger->entry_count > 0) wishes.replace_on_other_nodes(0, "crowded");
    host_.remove("mood");
  }

 private:
  Host host_;
};

constexpr std::array<topolet_option, 1> kOptions = {{{TOPOLET_STR("mood"),
                                                      TOPOLET_OPTION_STRING,
                                                      0,
                                                      TOPOLET_STR("good"),
                                                      {nullptr, 0},
                                                      0,
                                                      0,
                                                      TOPOLET_STR("Its mood.")}}};
constexpr topolet_plugin_entry kEntry = {sizeof(topolet_plugin_entry),
                                         TOPOLET_ABI_MINOR,
                                         TOPOLET_ABI_DRAFT,
                                         0,
                                         TOPOLET_STR("all"),
                                         TOPOLET_STR("1"),
                                         kOptions.data(),
                                         kOptions.size(),
                                         sizeof(topolet_option),
                                         &detail::create<Everything>,
                                         {},
                                         {},
                                         {}};

class SdkPluginAtWork : public ::testing::Test {
 protected:
  Machine machine_{"numa:2 core:2 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(SdkPluginAtWork, AnswersInPlainValues) {
  Plugin plugin(kEntry, host_);
  EXPECT_THAT(host_.log, ElementsAre("here"));
  EXPECT_THAT(plugin.annotations(), ElementsAre("mood", "taste"));
  EXPECT_THAT(plugin.taking_annotations(), ElementsAre("mood = greedy", "taste"));
  const Request request(machine_, ledger_, {}, 1);
  EXPECT_EQ(plugin.score(request)[0].score, 7);
  EXPECT_EQ(plugin.score(request)[0].code, "tasty");
  EXPECT_EQ(plugin.score(request)[1].kind, TOPOLET_VERDICT_ABSTAIN);
  ASSERT_EQ(plugin.propose(request).size(), 1U);
  EXPECT_EQ(plugin.propose(request)[0].to_string(), "1");
  const Picked picked = plugin.pick(request, 1);
  EXPECT_EQ(picked.withhold.to_string(), "2-3");
  ASSERT_EQ(picked.at_least.size(), 1U);
  EXPECT_EQ(picked.at_least[0].cpus.to_string(), "2-3");
  EXPECT_EQ(picked.at_least[0].count, 1U);
  EXPECT_EQ(picked.rejected, "");
  const Picked reviewed = plugin.pick(request, 1, set_of({2}));
  EXPECT_EQ(reviewed.rejected, "not these");
  EXPECT_EQ(reviewed.code, "not-these");
  const Adjusted adjusted = plugin.adjust(request, 1, set_of({2}));
  EXPECT_EQ(adjusted.mems.to_string(), "0-1");
  EXPECT_EQ(adjusted.env.at("A"), "1");
  EXPECT_EQ(adjusted.annotations.at("b"), "2");
  EXPECT_EQ(adjusted.reason, "why not");
}

TEST_F(SdkPluginAtWork, KeepsStateBetweenDecisionsOnly) {
  Plugin plugin(kEntry, host_);
  plugin.notify(TOPOLET_EVENT_PLACED, machine_, {.name = "web"}, set_of({0}));
  EXPECT_EQ(host_.state, (std::map<std::string, std::string>{{"mood", "good"}, {"web", "seen"}}));
  ledger_.place_shared({}, set_of({0}));
  const auto wishes = plugin.tick(machine_, ledger_, 0);
  ASSERT_EQ(wishes.size(), 1U);
  EXPECT_TRUE(wishes[0].move_nodes);
  EXPECT_EQ(wishes[0].reason, "crowded");
  EXPECT_EQ(host_.state.count("mood"), 0U);
  EXPECT_THAT(Host(host_.view()).keys(), ElementsAre("web"));
}

TEST_F(SdkPluginAtWork, WishesThatOthersArePlacedAnewWithAContainer) {
  Plugin plugin(kEntry, host_);
  ledger_.place_shared({}, set_of({0}));
  const Request request(machine_, ledger_, {}, 1);
  EXPECT_TRUE(plugin.pick(request, 1).replace.empty());
  const Picked reviewed = plugin.pick(request, 1, set_of({2}));
  ASSERT_EQ(reviewed.replace.size(), 1U);
  EXPECT_EQ(reviewed.replace[0].entry, 0U);
  EXPECT_TRUE(reviewed.replace[0].move_nodes);
  EXPECT_EQ(reviewed.replace[0].reason, "with it");
}

TEST_F(SdkPluginAtWork, ThrowsInTheTestWhatAHostWouldRefuse) {
  Plugin plugin(kEntry, host_, {{"mood", "bad"}});
  EXPECT_THROW(plugin.score(Request(machine_, ledger_, {}, 1)), std::runtime_error);
  EXPECT_THROW(plugin.notify(TOPOLET_EVENT_RELEASED, machine_, {}, {}), std::runtime_error);
  EXPECT_THROW(Plugin(kEntry, host_, {{"none", ""}}), std::invalid_argument);
}

/// Answers as it is told, by option `mood`.
class Wrong {
 public:
  Wrong(const Options& options, const Host&) : mood_(options["mood"]) {}
  void score(const topolet_request&, Scores& scores) const {
    scores.score(0, 1, "");
    scores.score(mood_ == "twice" ? 0 : 1, 1, "");
  }
  void propose(const topolet_request&, Proposals& proposals) const {
    for (int i = 0; mood_ == "many" && i < 9; ++i) proposals.nodes(set_of({0}).view());
    if (mood_ == "nothing") proposals.nodes(Set().view());
  }
  void pick(const topolet_pick_request& request, Picks& picks) const {
    if (mood_ == "empty") picks.narrow(Set().view());
    if (mood_ == "wide") picks.narrow((Set(request.usable) | set_of({99})).view());
    if (mood_ == "foreign") picks.withhold(set_of({99}).view());
    if (mood_ == "order") picks.order(std::vector<std::uint32_t>{1, 0, 1});
    if (mood_ == "share") picks.at_least(set_of({99}).view(), 1);
    if (mood_ == "silent") picks.reject("");
  }
  void adjust(const topolet_adjust_request&, Adjustments& adjustments) const {
    if (mood_ == "nowhere") adjustments.mems(set_of({7}).view());
    if (mood_ == "equals") adjustments.env("A=B", "");
  }
  std::uint32_t interval_ms() const { return 500; }
  void tick(const topolet_tick_request&, Wishes& wishes) const { wishes.replace(999, ""); }

 private:
  std::string mood_;
};

constexpr topolet_plugin_entry kWrongEntry = {sizeof(topolet_plugin_entry),
                                              TOPOLET_ABI_MINOR,
                                              TOPOLET_ABI_DRAFT,
                                              0,
                                              TOPOLET_STR("wrong"),
                                              TOPOLET_STR("1"),
                                              kOptions.data(),
                                              kOptions.size(),
                                              sizeof(topolet_option),
                                              &detail::create<Wrong>,
                                              {},
                                              {},
                                              {}};

/// Returns the error of a refused call; empty if it is not refused.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST_F(SdkPluginAtWork, RefusesWhatAHostRefuses) {
  const Request request(machine_, ledger_, {}, 1);
  const auto said_of = [&](const char* mood, auto call) {
    Plugin plugin(kWrongEntry, host_, {{"mood", mood}});
    return refusal([&] { call(plugin); });
  };
  const auto score = [&](Plugin& plugin) { plugin.score(request); };
  const auto pick = [&](Plugin& plugin) { plugin.pick(request, 2); };
  const auto adjust = [&](Plugin& plugin) { plugin.adjust(request, 2, set_of({0})); };
  EXPECT_EQ(said_of("good", score), "");
  EXPECT_EQ(said_of("good", pick), "");
  EXPECT_EQ(said_of("good", adjust), "");
  EXPECT_THAT(said_of("twice", score), HasSubstr("two verdicts on candidate 0"));
  const auto propose = [&](Plugin& plugin) { plugin.propose(request); };
  EXPECT_THAT(said_of("many", propose), HasSubstr("more than 8 proposals"));
  EXPECT_THAT(said_of("nothing", propose), HasSubstr("a proposal of no node"));
  EXPECT_THAT(said_of("empty", pick), HasSubstr("narrow to no CPU"));
  EXPECT_THAT(said_of("wide", pick), HasSubstr("narrow of CPUs 99, which were not offered; offered were 0-3"));
  EXPECT_THAT(said_of("foreign", pick), HasSubstr("withhold of CPUs 99"));
  EXPECT_THAT(said_of("order", pick), HasSubstr("order names CPU 1 twice"));
  EXPECT_THAT(said_of("share", pick), HasSubstr("at_least of CPUs 99, which were not offered"));
  EXPECT_THAT(said_of("silent", pick), HasSubstr("rejected without a word"));
  EXPECT_THAT(said_of("nowhere", adjust), HasSubstr("mems on nodes 7"));
  EXPECT_THAT(said_of("equals", adjust), HasSubstr("'=' in its name"));
  EXPECT_THAT(said_of("good", [&](Plugin& plugin) { plugin.tick(machine_, ledger_, 0); }),
              HasSubstr("a wish on entry 999, but there are 0"));
}

}  // namespace
}  // namespace topolet::sdk::testing
