#include "core/metrics/metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/unique_fd.hpp"
#include "core/engine/state/transitions.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/support/cri.pb.h"

namespace topolet::metrics {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Reads the text as Prometheus does: each family has its type before its samples, and each series is there once.
std::map<std::string, double> samples_in(const std::string& text) {
  std::map<std::string, double> samples;
  std::set<std::string> typed;
  const std::regex sample(R"(([a-z_]+)(\{([a-z_]+="[^"]*",?)*\})? (\S+))");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      const std::string name = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(typed.insert(name).second) << name << " has two types";
    }
    if (line.starts_with("#")) continue;
    std::smatch match;
    EXPECT_TRUE(std::regex_match(line, match, sample)) << line;
    std::string family = match[1];
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const std::size_t at = family.size() - std::min(family.size(), std::string(suffix).size());
      if (typed.count(family) == 0 && family.ends_with(suffix)) family.resize(at);
    }
    EXPECT_EQ(typed.count(family), 1U) << line << " has no type";
    EXPECT_TRUE(samples.emplace(match[1].str() + match[2].str(), std::stod(match[4])).second) << line << " twice";
  }
  return samples;
}

/// With the topology recorded, as after a start.
engine::Ledger on_machine(engine::Ledger ledger, const topology::Topology& topology) {
  engine::Transition transition =
      compute_transition(ledger, {}, milliseconds(1),
                         engine::event::Restarted{false, std::make_shared<const topology::Topology>(topology), {}});
  ledger.apply(transition);
  return ledger;
}

cri::FinishedCall call(const std::string& path, Code code = Code::kOk) {
  return {.path = path, .code = code, .total = milliseconds(7), .at_runtime = milliseconds(5)};
}

class MetricsTest : public ::testing::Test {
 protected:
  std::map<std::string, double> samples(const Moment& moment = {}) const { return samples_in(metrics_.text(moment)); }
  void commit(const engine::Event& event) {
    engine::Transition transition = compute_transition(ledger_, {}, milliseconds(1), event);
    transition.committed_at = std::chrono::steady_clock::now();
    ledger_.apply(transition);
    metrics_.on_written(transition);
    metrics_.on_durable(transition);
  }

  Metrics metrics_{"1.2"};
  engine::Ledger ledger_ = engine::ledger_of({engine::shared("s")});
};

TEST_F(MetricsTest, CountsCallsByMethodAndCode) {
  const std::string create = "/runtime.v1.RuntimeService/CreateContainer";
  metrics_.on_call(call(create));
  metrics_.on_call(call(create));
  metrics_.on_call(call(create, Code::kResourceExhausted));
  metrics_.on_call({.path = "/runtime.v1.RuntimeService/GetContainerEvents", .is_unary = false, .at_runtime = {}});
  const auto now = samples();
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="CreateContainer"})"), 2);
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="RESOURCE_EXHAUSTED",method="CreateContainer"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="GetContainerEvents"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_cri_call_seconds_count{method="CreateContainer"})"), 3);
  EXPECT_NEAR(now.at(R"(topolet_cri_call_seconds_sum{method="CreateContainer"})"), 0.021, 1e-6);
  EXPECT_NEAR(now.at(R"(topolet_cri_added_seconds_sum{method="CreateContainer"})"), 0.006, 1e-6);
  EXPECT_EQ(now.at(R"(topolet_cri_added_seconds_bucket{method="CreateContainer",le="0.001"})"), 0);
  EXPECT_EQ(now.at(R"(topolet_cri_added_seconds_bucket{method="CreateContainer",le="0.0025"})"), 3);
  EXPECT_EQ(now.count(R"(topolet_cri_call_seconds_count{method="GetContainerEvents"})"), 0U) << "it is endless";
}

std::set<std::string> methods_of(const google::protobuf::ServiceDescriptor& service) {
  std::set<std::string> names;
  for (int i = 0; i < service.method_count(); ++i) names.insert(service.method(i)->name());
  return names;
}

/// Both services of the CRI, in both of its versions.
TEST_F(MetricsTest, KnowsTheServiceByTheMethod) {
  const google::protobuf::FileDescriptor& cri = *runtime::v1::VersionRequest::descriptor()->file();
  ASSERT_EQ(cri.service_count(), 2);
  const std::set<std::string> of_runtime = methods_of(*cri.FindServiceByName("RuntimeService"));
  const std::set<std::string> of_images = methods_of(*cri.FindServiceByName("ImageService"));
  std::vector<std::string> of_both;
  std::set_intersection(of_runtime.begin(), of_runtime.end(), of_images.begin(), of_images.end(),
                        std::back_inserter(of_both));
  EXPECT_THAT(of_both, IsEmpty()) << "then a label has to tell the services apart";
  for (const std::string& name : of_runtime) metrics_.on_call(call("/runtime.v1.ImageService/" + name));
  for (const std::string& name : of_images) metrics_.on_call(call("/runtime.v1.RuntimeService/" + name));
  metrics_.on_call(call("/somebody.elses.Service/Version"));
  const auto now = samples();
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="other"})"), of_runtime.size() + of_images.size() + 1);
  EXPECT_THAT(metrics_.text({}), Not(HasSubstr(R"(method="Version")"))) << "of the runtime's service only";
}

TEST_F(MetricsTest, CountsBothVersionsOfTheCriTogether) {
  metrics_.on_call(call("/runtime.v1.RuntimeService/CreateContainer"));
  metrics_.on_call(call("/runtime.v1alpha2.RuntimeService/CreateContainer"));
  metrics_.on_call(call("/runtime.v1alpha2.ImageService/PullImage"));
  const auto now = samples();
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="CreateContainer"})"), 2);
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="PullImage"})"), 1);
}

TEST_F(MetricsTest, HasNoLabelsThatOthersChoose) {
  for (int i = 0; i < 10000; ++i) {
    const std::string odd = "/runtime.v1.RuntimeService/Odd" + std::to_string(i) + "\"\n{}";
    metrics_.on_call(call(odd));
  }
  const std::size_t before = samples().size();
  for (int i = 0; i < 300; ++i) {
    const std::string name = "evil\"\n" + std::to_string(i);
    placement::Workload workload = engine::guaranteed(name, 1);
    commit(engine::event::CreateAdmitted{workload, engine::exclusive_on({1})});
    commit(engine::event::CreateWithdrawn{workload.key, "cancelled"});
  }
  const auto now = samples();
  EXPECT_EQ(now.at(R"(topolet_cri_calls_total{code="OK",method="other"})"), 10000);
  EXPECT_EQ(now.at(R"(topolet_audit_events_total{event="placed"})"), 300);
  EXPECT_LE(now.size(), before + 20);
  EXPECT_THAT(metrics_.text({}), Not(HasSubstr("evil")));
}

TEST_F(MetricsTest, CountsDecisionsMovesAndHowLongTheyTake) {
  engine::Plan plan = engine::exclusive_on({0, 1});
  plan.decision.reason_code = "best-score";
  plan.decision.times.decide = std::chrono::microseconds(700);
  plan.decision.times.policies["numa"] = std::chrono::microseconds(300);
  commit(engine::event::CreateAdmitted{engine::guaranteed("a", 2), plan});
  placement::Decision denied;
  denied.denied = true;
  denied.reason = "no";
  denied.reason_code = "too-few-free-cpus";
  commit(engine::event::Denied{engine::guaranteed("b", 99), denied});
  const auto now = samples();
  EXPECT_EQ(now.at(R"(topolet_decisions_total{outcome="placed",reason_code="best-score"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_decisions_total{outcome="denied",reason_code="too-few-free-cpus"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_audit_events_total{event="denied"})"), 1);
  for (const char* word : {"drift", "overlap"}) {
    EXPECT_EQ(now.at(fmt::format(R"(topolet_audit_events_total{{event="{}"}})", word)), 0)
        << "so that an alert sees the first one";
  }
  EXPECT_EQ(now.at("topolet_decision_seconds_count"), 1);
  EXPECT_NEAR(now.at(R"(topolet_policy_seconds_sum{plugin="numa"})"), 0.0003, 1e-9);
  EXPECT_EQ(now.at(R"(topolet_moves_total{kind="pool"})"), 1) << "the shared one left two CPUs";
  EXPECT_EQ(now.at("topolet_store_commit_seconds_count"), 2);
}

TEST_F(MetricsTest, TakesTheTimeOfACommitUntilItIsWritten) {
  engine::Transition transition =
      compute_transition(ledger_, {}, milliseconds(1),
                         engine::event::CreateAdmitted{engine::guaranteed("a", 1), engine::exclusive_on({1})});
  transition.committed_at = std::chrono::steady_clock::now() - std::chrono::seconds(90);
  metrics_.on_durable(transition);
  EXPECT_EQ(samples().at("topolet_store_commit_seconds_count"), 0) << "nobody waits for it any more";
  metrics_.on_written(transition);
  const auto now = samples();
  EXPECT_EQ(now.at("topolet_store_commit_seconds_count"), 1);
  EXPECT_GE(now.at("topolet_store_commit_seconds_sum"), 90);
  EXPECT_EQ(now.at(R"(topolet_store_commit_seconds_bucket{le="60"})"), 0);
}

TEST_F(MetricsTest, CountsADenialEachTime) {
  placement::Decision denied;
  denied.denied = true;
  denied.reason = "no";
  denied.reason_code = "too-few-free-cpus";
  for (int i = 0; i < 5; ++i) commit(engine::event::Denied{engine::guaranteed("b", 99), denied});
  EXPECT_EQ(samples().at("topolet_denials_total"), 5);
}

TEST_F(MetricsTest, CountsWhatIsRequestedOnCpusOutsideNodes) {
  topology::Topology topology = *testing::machine("node:2 core:4 pu:1");
  topology.nodes.pop_back();
  const std::vector<NodeUsage> nodes =
      node_usage_of(on_machine(engine::ledger_of({engine::exclusive("a", {0, 5})}), topology));
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].requested_milli, 1000);
  EXPECT_EQ(nodes[1].node, "none");
  EXPECT_EQ(nodes[1].requested_milli, 1000);
}

TEST_F(MetricsTest, CallsNothingExclusiveThatIsNot) {
  engine::Allocation overruled = engine::exclusive("a", {0, 1});
  overruled.overruled = engine::Overruled{milliseconds(1), {}};
  engine::Allocation stray = engine::shared("s");
  stray.seen_on = {4};
  const engine::Ledger ledger =
      engine::ledger_of({overruled, engine::exclusive("b", {4}), engine::exclusive("c", {5}), stray});
  Moment moment;
  moment.engine = EngineState{.containers = {},
                              .overruled = 3,
                              .nodes = node_usage_of(on_machine(ledger, *testing::machine("node:2 core:4 pu:1")))};
  const auto now = samples(moment);
  EXPECT_EQ(now.at(R"(topolet_exclusive_cpus{numa_node="0"})"), 0);
  EXPECT_EQ(now.at(R"(topolet_lost_exclusive_cpus{numa_node="0"})"), 2);
  EXPECT_EQ(now.at(R"(topolet_exclusive_cpus{numa_node="1"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_lost_exclusive_cpus{numa_node="1"})"), 1);
  EXPECT_EQ(now.at("topolet_overruled_containers"), 3);
}

TEST_F(MetricsTest, CountsHowOftenContainersAreOverruled) {
  EXPECT_EQ(samples().at("topolet_overruled_total"), 0);
  ledger_ = engine::ledger_of({engine::shared("s")});
  const placement::ContainerKey key = ledger_.allocations().begin()->first;
  commit(engine::event::SeenInKernel{key, {0}, false, true});
  commit(engine::event::SeenInKernel{key, {0}, false, true});
  commit(engine::event::Ended{key, "exited"});
  EXPECT_EQ(samples().at("topolet_overruled_total"), 1);
  EXPECT_EQ(samples().at(R"(topolet_audit_events_total{event="overruled"})"), 2) << "that it is over, too";
}

TEST_F(MetricsTest, CountsWhoDoesNotLeaveCpus) {
  Moment moment;
  moment.engine = EngineState{.containers = {}, .stuck = 2, .nodes = {}};
  EXPECT_EQ(samples(moment).at("topolet_stuck_containers"), 2);
  EXPECT_EQ(samples().at("topolet_stuck_total"), 0);
  ledger_ = engine::ledger_of({engine::shared("s")});
  const placement::ContainerKey key = ledger_.allocations().begin()->first;
  commit(engine::event::FoundStuck{key, {0}, "busy"});
  commit(engine::event::FoundStuck{key, {0}, "busy"});
  commit(engine::event::CameLoose{key, "it can be moved again"});
  EXPECT_EQ(samples().at("topolet_stuck_total"), 1);
  EXPECT_EQ(samples().at(R"(topolet_audit_events_total{event="stuck"})"), 2) << "that it is over, too";
}

TEST_F(MetricsTest, ShowsTheStoreWhereItIsKnown) {
  EXPECT_EQ(samples().count("topolet_store_bytes"), 0U) << "unknown is not zero";
  Moment moment;
  moment.store = StoreFigures{4096, {}};
  EXPECT_EQ(samples(moment).at("topolet_store_bytes"), 4096);
  EXPECT_EQ(samples(moment).count("topolet_store_oldest_decision_time_seconds"), 0U) << "there is none";
  moment.store->oldest_decision_ms = 1500;
  EXPECT_EQ(samples(moment).at("topolet_store_oldest_decision_time_seconds"), 1.5);
}

TEST_F(MetricsTest, ShowsTheLargestBlockOfEachNode) {
  EXPECT_EQ(samples().count(R"(topolet_largest_exclusive_cpus{numa_node="0"})"), 0U);
  Moment moment;
  moment.largest_exclusive = {{"0", 3}, {"1", 0}};
  EXPECT_EQ(samples(moment).at(R"(topolet_largest_exclusive_cpus{numa_node="0"})"), 3);
  EXPECT_EQ(samples(moment).at(R"(topolet_largest_exclusive_cpus{numa_node="1"})"), 0);
}

TEST_F(MetricsTest, TellsWhatIsMeasuredWhileItIs) {
  EXPECT_EQ(samples().count("topolet_load_age_seconds"), 0U);
  Moment moment;
  moment.load = LoadFigures{.age_seconds = 1.5, .used_cpus = {{"0", 2.5}}};
  EXPECT_EQ(samples(moment).count("topolet_memory_high_containers"), 0U);
  moment.load->held_back_by_memory_high = 2;
  const auto now = samples(moment);
  EXPECT_EQ(now.at("topolet_load_age_seconds"), 1.5);
  EXPECT_EQ(now.at(R"(topolet_used_cpus{numa_node="0"})"), 2.5);
  EXPECT_EQ(now.at("topolet_memory_high_containers"), 2);
  EXPECT_EQ(now.count(R"(topolet_effective_cpus{numa_node="0"})"), 0U) << "what is not known is not zero";
}

TEST_F(MetricsTest, TellsOfReloads) {
  EXPECT_EQ(samples().at("topolet_reload_succeeded"), 1) << "the start";
  const double started = samples().at("topolet_reload_time_seconds");
  EXPECT_GE(started, samples().at("topolet_start_time_seconds"));
  metrics_.on_reload(false);
  EXPECT_EQ(samples().at("topolet_reload_succeeded"), 0);
  EXPECT_GE(samples().at("topolet_reload_time_seconds"), started);
  metrics_.on_reload(true);
  EXPECT_EQ(samples().at("topolet_reload_succeeded"), 1);
}

TEST_F(MetricsTest, TellsOfTheProcess) {
  const auto now = samples();
  EXPECT_GT(now.at("topolet_process_resident_memory_bytes"), 1e6);
  EXPECT_GT(now.at("topolet_process_cpu_seconds_total"), 0);
  EXPECT_GT(now.at("topolet_process_max_fds"), 0);
  const UniqueFd one_more(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(samples().at("topolet_process_open_fds"), now.at("topolet_process_open_fds") + 1);
}

TEST_F(MetricsTest, ShowsTheNodeAsItIs) {
  const engine::Ledger ledger =
      engine::ledger_of({engine::exclusive("a", {0, 1}, engine::Phase::kRunning, {2}), engine::shared("s")}, {},
                        {CpuSet::range(0, 7), {7}, {}});
  Moment moment;
  moment.engine = EngineState{.generation = 10,
                              .reconciled = true,
                              .containers = {{"exclusive", 1}},
                              .overlapping = 2,
                              .foreign = {{"kata", 3}},
                              .nodes = node_usage_of(on_machine(ledger, *testing::machine("node:2 core:4 pu:1")))};
  moment.runtime_connected = true;
  moment.plugins = {{"numa", 12, {{"late", 3}}, true, 4}};
  const auto now = samples(moment);
  EXPECT_EQ(now.at(R"(topolet_pool_cpus{numa_node="0"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_pool_cpus{numa_node="1"})"), 3);
  EXPECT_EQ(now.at(R"(topolet_exclusive_cpus{numa_node="0"})"), 2);
  EXPECT_EQ(now.at(R"(topolet_withheld_cpus{numa_node="0"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_reserved_cpus{numa_node="1"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_requested_cpus{numa_node="0"})"), 2);
  EXPECT_EQ(now.at(R"(topolet_containers{mode="exclusive"})"), 1);
  EXPECT_EQ(now.at("topolet_overlapping_containers"), 2);
  EXPECT_EQ(now.at("topolet_foreign_containers{handler=\"kata\"}"), 3);
  EXPECT_EQ(now.at("topolet_reconciled"), 1);
  EXPECT_EQ(now.at("topolet_runtime_connected"), 1);
  EXPECT_EQ(now.at(R"(topolet_plugin_lost_votes_total{plugin="numa",why="late"})"), 3);
  EXPECT_EQ(now.at(R"(topolet_plugin_quarantined{plugin="numa"})"), 1);
  EXPECT_EQ(now.at(R"(topolet_plugin_late_ticks_total{plugin="numa"})"), 4);
  EXPECT_EQ(now.at(R"(topolet_build_info{version="1.2"})"), 1);
  EXPECT_EQ(now.at("topolet_engine_busy"), 0);
  const auto busy = samples();
  EXPECT_EQ(busy.at("topolet_engine_busy"), 1);
  EXPECT_EQ(busy.count("topolet_generation"), 0U);
}

}  // namespace
}  // namespace topolet::metrics
