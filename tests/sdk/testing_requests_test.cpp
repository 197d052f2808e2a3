#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace topolet::sdk::testing {
namespace {

using ::testing::ElementsAre;

const Machine& two_nodes() {
  static const Machine kMachine("numa:2 core:2 pu:1");
  return kMachine;
}

TEST(SdkRequest, SaysAllThatAContainerIs) {
  const Workload workload({.attempt = 2,
                           .sandbox_id = "s",
                           .container_id = "c",
                           .runtime_handler = "kata",
                           .annotations = {{"example.org/a", "1"}}});
  EXPECT_EQ(workload.view().attempt, 2U);
  EXPECT_EQ(text(workload.view().sandbox_id), "s");
  EXPECT_EQ(text(workload.view().container_id), "c");
  EXPECT_EQ(text(workload.view().runtime_handler), "kata");
  EXPECT_EQ(value_of(workload.view().annotations, "example.org/a"), "1");
}

TEST(SdkRequest, SaysWhatIsDecidedAndWhatTheContainerHad) {
  const Ledger ledger(two_nodes());
  Request request(two_nodes(), ledger, {}, 0);
  EXPECT_EQ(request.view().occasion, TOPOLET_OCCASION_CREATE);
  request.occasion(TOPOLET_OCCASION_RESTART)
      .mode(TOPOLET_MODE_RESERVED)
      .why_shared(TOPOLET_SHARED_RESERVED_NAMESPACE)
      .cpu_source(TOPOLET_CPUS_PREFER_ISOLATED)
      .had(set_of({0, 1}), set_of({2}), set_of({1}))
      .keep(set_of({1}));
  const topolet_request& view = request.view();
  EXPECT_EQ(view.occasion, TOPOLET_OCCASION_RESTART);
  EXPECT_EQ(view.mode, TOPOLET_MODE_RESERVED);
  EXPECT_EQ(view.why_shared, TOPOLET_SHARED_RESERVED_NAMESPACE);
  EXPECT_EQ(view.cpu_source, TOPOLET_CPUS_PREFER_ISOLATED);
  EXPECT_EQ(to_list(view.had_cpus), "0-1");
  EXPECT_EQ(to_list(view.had_withheld), "2");
  EXPECT_EQ(to_list(view.had_mems), "1");
  EXPECT_EQ(to_list(view.keep), "1");
}

TEST(SdkLedger, HasAllModesAndSaysHowFarAContainerIs) {
  Ledger ledger(two_nodes());
  ledger.place_exclusive({.name = "a", .pod_labels = {{"app", "web"}}}, set_of({0})).entry_flags(TOPOLET_ENTRY_PENDING);
  ledger.place_reserved({.name = "b"}, set_of({1}));
  ledger.place_foreign({.name = "c", .attempt = 1, .runtime_handler = "kata"}, set_of({2}));
  const Array<topolet_ledger_entry> placed = entries(ledger.view());
  EXPECT_EQ(placed[0].flags, TOPOLET_ENTRY_PENDING);
  EXPECT_EQ(value_of(placed[0].pod_labels, "app"), "web");
  EXPECT_EQ(placed[1].mode, TOPOLET_MODE_RESERVED);
  EXPECT_EQ(placed[1].flags, 0U);
  EXPECT_EQ(placed[2].mode, TOPOLET_MODE_FOREIGN);
  EXPECT_EQ(placed[2].attempt, 1U);
  EXPECT_EQ(text(placed[2].runtime_handler), "kata");
  EXPECT_EQ(to_list(ledger.view().pool), "1,3");
  EXPECT_EQ(node_demands(ledger.view())[1].exclusive_cpus, 1U);
}

TEST(SdkLedger, HasItsEntriesInTheHostsOrder) {
  Ledger ledger(two_nodes());
  ledger.place_shared({.pod_uid = "2", .name = "b"}, set_of({0}));
  ledger.place_shared({.pod_uid = "2", .name = "a", .attempt = 10}, set_of({0}));
  ledger.place_shared({.pod_uid = "10", .name = "z"}, set_of({0})).entry_flags(TOPOLET_ENTRY_STARTED);
  ledger.place_shared({.pod_uid = "2", .name = "a", .attempt = 9}, set_of({0}));
  std::vector<std::string> order;
  for (const topolet_ledger_entry& entry : entries(ledger.view())) {
    order.push_back(std::string(text(entry.pod_uid)) + "/" + std::string(text(entry.container_name)) + "/" +
                    std::to_string(entry.attempt));
  }
  EXPECT_THAT(order, ElementsAre("10/z/0", "2/a/9", "2/a/10", "2/b/0"));
  EXPECT_EQ(entries(ledger.view())[0].flags, TOPOLET_ENTRY_STARTED) << "of the one that was placed last then";
}

TEST(SdkRequest, HasPairsByTheirKeysAndOfEachTheLast) {
  const Workload workload({.env = {{"B", "1"}, {"A", "2"}, {"B", "3"}}});
  ASSERT_EQ(workload.view().env.count, 2U);
  EXPECT_EQ(text(workload.view().env.items[0].key), "A");
  EXPECT_EQ(text(workload.view().env.items[1].value), "3");
}

/// Writes down what it is given.
class Given {
 public:
  static constexpr std::array<topolet_option, 6> kOptions = {{
      duration_option("every", "1m30s", 0, 0, "How often."),
      size_option("room", "64Mi", 0, 0, "How much."),
      list_option("names", " a , b ", "Which."),
      cpulist_option("cpus", "3,1-2", "Where."),
      string_option("text", " as it is ", "What."),
      repeated(size_option("sizes", "1k", 0, 0, "How much each.")),
  }};
  Given(const Options& options, const Host& host) {
    for (const char* name : {"every", "room", "names", "cpus", "text"}) {
      host.log(TOPOLET_LOG_INFO, options[name]);
    }
    for (const std::string_view size : options.all("sizes")) host.log(TOPOLET_LOG_INFO, size);
  }
  void score(const topolet_request&, Scores&) const {}
};

std::vector<std::string> given(const Plugin::Values& values) {
  const topolet_plugin_entry entry = {sizeof(topolet_plugin_entry),
                                      TOPOLET_ABI_MINOR,
                                      TOPOLET_ABI_DRAFT,
                                      0,
                                      TOPOLET_STR("given"),
                                      TOPOLET_STR("1"),
                                      Given::kOptions.data(),
                                      static_cast<std::uint32_t>(Given::kOptions.size()),
                                      sizeof(topolet_option),
                                      &detail::create<Given>,
                                      {},
                                      {},
                                      {}};
  FakeHost host;
  const Plugin plugin(entry, host, values);
  return host.log;
}

TEST(SdkPlugin, IsGivenThePlainFormOfValues) {
  EXPECT_THAT(given({}), ElementsAre("90000", "67108864", "a,b", "1-3", " as it is "));
  EXPECT_THAT(
      given({{"every", "250ms"}, {"room", "2k"}, {"names", ""}, {"cpus", ""}, {"sizes", "1Ki"}, {"sizes", "0"}}),
      ElementsAre("250", "2000", "", "", " as it is ", "1024", "0"));
}

TEST(SdkPlugin, IsNotGivenAValueThatAHostWouldRefuse) {
  using Value = std::pair<std::string, std::string>;
  for (const Value& bad : {Value{"every", "5"}, Value{"every", "5s1m"}, Value{"every", "soon"}, Value{"every", ""},
                           Value{"room", "1 Mi"}, Value{"room", "-1"}, Value{"room", "9Ei"}, Value{"names", "a,,b"},
                           Value{"names", "a,"}, Value{"cpus", "3-1"}}) {
    EXPECT_THROW(given({bad}), std::invalid_argument) << bad.first << " = " << bad.second;
  }
}

/// Wants a tick from a thread of its own.
class Waker {
 public:
  explicit Waker(const Options&, const Host& host) : thread_([host] { host.tick_soon(); }) {}
  ~Waker() { thread_.join(); }
  void score(const topolet_request&, Scores&) const {}

 private:
  std::thread thread_;
};

/// Writes down what it is told.
class Listener {
 public:
  Listener(const Options& options, const Host& host) : host_(host) {
    host_.log(TOPOLET_LOG_INFO, options.machine() == nullptr ? "no machine" : "a machine");
  }
  void adjust(const topolet_adjust_request& request, Adjustments& adjustments) const {
    adjustments.env("ASKS", std::to_string(request.asks));
    adjustments.env("MODE", std::to_string(request.mode));
  }
  void notify(const topolet_event& event) const {
    host_.log(TOPOLET_LOG_INFO, std::to_string(event.sequence) + " kind " + std::to_string(event.kind) + " mode " +
                                    std::to_string(event.mode) + " flags " + std::to_string(event.flags) + " mems " +
                                    to_list(event.mems) + " id " + std::string(text(event.container_id)) + " exit " +
                                    std::to_string(event.exit_code) + " " + std::string(text(event.reason)));
  }

 private:
  Host host_;
};

topolet_option repeated(topolet_option option) {
  option.flags = TOPOLET_OPTION_REPEATED;
  return option;
}

std::vector<std::string> g_values;

std::int32_t create_listener(const topolet_create_request* request, const topolet_error_sink* error,
                             const topolet_instance** instance) {
  g_values.clear();
  for (std::size_t i = 0; i < request->options.count; ++i) g_values.emplace_back(text(request->options.items[i].value));
  g_values.push_back("purpose " + std::to_string(request->purpose));
  return detail::create<Listener>(request, error, instance);
}

class SdkPluginIsTold : public ::testing::Test {
 protected:
  const std::array<topolet_option, 2> options_ = {string_option("one", "1", "One."),
                                                  repeated(string_option("many", "", "Many."))};
  const topolet_plugin_entry entry_ = {sizeof(topolet_plugin_entry),
                                       TOPOLET_ABI_MINOR,
                                       TOPOLET_ABI_DRAFT,
                                       0,
                                       TOPOLET_STR("listener"),
                                       TOPOLET_STR("1"),
                                       options_.data(),
                                       2,
                                       sizeof(topolet_option),
                                       &create_listener,
                                       {},
                                       {},
                                       {}};
  FakeHost host_;
};

TEST(SdkFakeHost, CountsTheTicksThatAThreadOfThePluginWants) {
  const topolet_plugin_entry entry = {sizeof(topolet_plugin_entry),
                                      TOPOLET_ABI_MINOR,
                                      TOPOLET_ABI_DRAFT,
                                      0,
                                      TOPOLET_STR("waker"),
                                      TOPOLET_STR("1"),
                                      nullptr,
                                      0,
                                      sizeof(topolet_option),
                                      &detail::create<Waker>,
                                      {},
                                      {},
                                      {}};
  FakeHost host;
  const Plugin plugin(entry, host);
  EXPECT_TRUE(host.wait_for_wanted_ticks(1));
  EXPECT_EQ(host.wanted_ticks(), 1U);
  EXPECT_FALSE(host.wait_for_wanted_ticks(2, std::chrono::seconds(0)));
}

TEST_F(SdkPluginIsTold, WhatItIsCreatedForAndRepeatedOptions) {
  const Plugin plugin(entry_, host_, {{"many", "a"}, {"many", "b"}}, {},
                      {.purpose = TOPOLET_PURPOSE_CHECK, .machine = &two_nodes()});
  EXPECT_THAT(g_values, ElementsAre("1", "a", "b", "purpose 1"));
  const Plugin without(entry_, host_);
  EXPECT_THAT(g_values, ElementsAre("1", "purpose 0"));
  EXPECT_THAT(host_.log, ElementsAre("a machine", "no machine"));
}

TEST_F(SdkPluginIsTold, WhomAdjustIsAskedFor) {
  const Ledger ledger(two_nodes());
  Request request(two_nodes(), ledger, {}, 0);
  request.mode(TOPOLET_MODE_RESERVED);
  Plugin plugin(entry_, host_);
  const Adjusted adjusted = plugin.adjust(request, 0, set_of({0}), TOPOLET_ASKS_UPDATE);
  EXPECT_EQ(adjusted.env.at("ASKS"), "1");
  EXPECT_EQ(adjusted.env.at("MODE"), "2");
}

TEST_F(SdkPluginIsTold, AllThatAnEventSays) {
  Plugin plugin(entry_, host_);
  host_.log.clear();
  plugin.notify({.kind = TOPOLET_EVENT_EXITED, .mems = set_of({1}), .mode = TOPOLET_MODE_SHARED, .exit_code = 137},
                two_nodes(), {.container_id = "c"});
  plugin.notify({.kind = TOPOLET_EVENT_DENIED, .reason = "no room"}, two_nodes(), {});
  plugin.notify({.kind = TOPOLET_EVENT_PLACED, .flags = TOPOLET_EVENT_ADOPTED}, two_nodes(), {});
  EXPECT_THAT(host_.log, ElementsAre("1 kind 5 mode 1 flags 0 mems 1 id c exit 137 ",
                                     "2 kind 7 mode 0 flags 0 mems  id  exit 0 no room",
                                     "3 kind 0 mode 0 flags 1 mems  id  exit 0 "));
}

}  // namespace
}  // namespace topolet::sdk::testing
