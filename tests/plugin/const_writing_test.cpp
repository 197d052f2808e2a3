// Plugins that write to what they are only shown: nobody but themselves notices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <atomic>
#include <functional>
#include <map>
#include <sstream>
#include <thread>
#include <topolet/policy.hpp>

#include "core/base/log.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/make_request.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/topology/discover.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;

/// Returns all that a plugin sees of a value, as text; the overloads do so for the parts of a request.
std::string seen(topolet_set set) { return "[" + sdk::Set(set).to_string() + "]"; }
std::string seen(topolet_str text) { return "'" + std::string(sdk::text(text)) + "'"; }
std::string seen(topolet_strs strs) {
  std::string all;
  for (std::size_t i = 0; i < strs.count; ++i) all += seen(strs.items[i]);
  return all;
}
std::string seen(topolet_kvs kvs) {
  std::string all;
  for (std::size_t i = 0; i < kvs.count; ++i) all += seen(kvs.items[i].key) + "=" + seen(kvs.items[i].value);
  return all;
}
std::string seen(const topolet_demand* demand) {
  if (demand == nullptr) return "none";
  std::string all =
      fmt::format("{} {} {} {} {}", demand->cpu_request_milli, demand->cpu_limit_milli, demand->memory_request_bytes,
                  demand->memory_limit_bytes, demand->memory_request_estimated);
  for (std::uint32_t i = 0; i < demand->huge_page_limit_count; ++i) {
    all += seen(demand->huge_page_limits[i].page_size) + std::to_string(demand->huge_page_limits[i].bytes);
  }
  return all;
}
std::string seen(const topolet_workload& workload) {
  return fmt::format("{}{}{}{}{}{} {} {} {} {} {}{}{}", seen(workload.pod_uid), seen(workload.pod_name),
                     seen(workload.pod_namespace), seen(workload.sandbox_id), seen(workload.container_name),
                     seen(workload.runtime_handler), workload.attempt, workload.qos, seen(workload.demand),
                     seen(workload.pod_demand), seen(workload.kubelet_cpus), seen(workload.kubelet_mems),
                     seen(workload.pod_nodes)) +
         seen(workload.devices) + seen(workload.cdi_devices) + seen(workload.env) + seen(workload.pod_labels) +
         seen(workload.pod_annotations) + seen(workload.annotations) + seen(workload.settings) +
         seen(workload.used_devices);
}
std::string seen(const topolet_ledger& ledger) {
  std::string all = fmt::format("{}: {}{}{}{}{}\n", ledger.generation, seen(ledger.allowed), seen(ledger.reserved_cpus),
                                seen(ledger.pool), seen(ledger.exclusive), seen(ledger.withheld));
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    all += fmt::format("{}{} {} {} {} {}{}{} {} {}{}\n", seen(entry.pod_uid), seen(entry.container_name), entry.attempt,
                       entry.qos, entry.mode, seen(entry.cpus), seen(entry.withheld), seen(entry.mems),
                       seen(entry.demand), seen(entry.settings), seen(entry.used_devices));
  }
  for (const topolet_node_demand& node : sdk::node_demands(ledger)) {
    all += fmt::format("{} {} {} {}\n", node.containers, node.exclusive_cpus, node.cpu_request_milli,
                       node.memory_request_bytes);
  }
  return all;
}
std::string seen(const topolet_request& request) {
  std::string all = fmt::format("{} {}\n", request.exclusive, request.exclusive_cpus) + seen(*request.workload) + "\n" +
                    seen(*request.ledger);
  all += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", request.occasion, request.mode, request.flags,
                     request.cpu_source, request.why_shared, seen(request.had_cpus), seen(request.had_withheld),
                     seen(request.had_mems), seen(request.keep), request.min_shared_cpus);
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    all += fmt::format("{} {} {} {} {} {} {}\n", candidate.kind, candidate.is_domain, candidate.distance,
                       seen(candidate.nodes), seen(candidate.cpus), seen(candidate.pool), seen(candidate.usable));
  }
  return all + seen(request.topology->allowed);
}
/// Returns all that could be shown of the core's own values.
std::string all_of(const placement::PolicyRequest& request) { return seen(abi_view(request).view()); }

/// A plugin that notes all that it is shown, and scores candidates by their positions.
class Witness {
 public:
  Witness() {
    score_ = {sizeof(score_), 0, [](auto* instance, auto* request, auto* sink) {
                self(instance).notes_ += "score\n" + seen(*request);
                for (std::uint32_t i = 0; i < request->candidate_count; ++i) {
                  sink->set(sink, i, TOPOLET_VERDICT_SCORE, static_cast<std::int32_t>(i % 7), TOPOLET_STR("it is so"));
                }
                return self(instance).during_score(*request);
              }};
    propose_ = {sizeof(propose_), 0, [](auto* instance, auto* request, auto*) -> std::int32_t {
                  self(instance).notes_ += "propose\n" + seen(*request);
                  return TOPOLET_OK;
                }};
    pick_ = {sizeof(pick_), 0, [](auto* instance, auto* request, auto*) -> std::int32_t {
               self(instance).notes_ += fmt::format("pick {} {} {} {}\n", request->candidate, seen(request->usable),
                                                    seen(request->chosen), request->count) +
                                        seen(*request->request);
               return TOPOLET_OK;
             }};
    adjust_ = {sizeof(adjust_), 0, [](auto* instance, auto* request, auto*) -> std::int32_t {
                 self(instance).notes_ +=
                     fmt::format("adjust {} {} {} {} {}\n", request->candidate, request->mode, seen(request->cpus),
                                 seen(request->withheld), seen(request->memory)) +
                     seen(*request->request);
                 return TOPOLET_OK;
               }};
    events_ = {sizeof(events_), 0, [](auto* instance, auto* event, auto*) -> std::int32_t {
                 self(instance).notes_ += fmt::format("event {} {} {}{}{}", event->kind, event->mode, seen(event->cpus),
                                                      seen(event->withheld), seen(event->mems)) +
                                          seen(*event->workload);
                 return TOPOLET_OK;
               }};
    tick_ = {sizeof(tick_), 100, [](auto* instance, auto* request, auto*) -> std::int32_t {
               self(instance).notes_ += "tick\n" + seen(*request->ledger);
               return TOPOLET_OK;
             }};
    instance_ = {sizeof(instance_), 0, this,
                 [](const topolet_instance* instance, topolet_str id) -> const void* {
                   const Witness& own = self(instance);
                   const std::map<std::string, const void*> all = {
                       {TOPOLET_SCORE_ID, &own.score_},   {TOPOLET_PROPOSE_ID, &own.propose_},
                       {TOPOLET_PICK_ID, &own.pick_},     {TOPOLET_ADJUST_ID, &own.adjust_},
                       {TOPOLET_EVENTS_ID, &own.events_}, {TOPOLET_TICK_ID, &own.tick_}};
                   const auto found = all.find(std::string(sdk::text(id)));
                   return found == all.end() ? nullptr : found->second;
                 },
                 [](const topolet_instance*) {}};
    plugin_ =
        PluginPolicy::wrap("witness", std::make_unique<PluginHost>("witness", make_silent_log(), nullptr), &instance_)
            .value();
  }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  PluginVote vote() const { return {"witness", plugin_}; }
  const std::string& notes() const { return notes_; }
  std::set<std::string> lines() const {
    std::istringstream notes(notes_);
    std::set<std::string> all;
    for (std::string line; std::getline(notes, line);) all.insert(line);
    return all;
  }

  std::function<std::int32_t(const topolet_request&)> during_score = [](const auto&) { return TOPOLET_OK; };

 private:
  static Witness& self(const topolet_instance* instance) { return *static_cast<Witness*>(instance->context); }

  std::string notes_;
  topolet_score score_{};
  topolet_propose propose_{};
  topolet_pick pick_{};
  topolet_adjust adjust_{};
  topolet_events events_{};
  topolet_tick tick_{};
  topolet_instance instance_{};
  std::shared_ptr<PluginPolicy> plugin_;
};

/// Every field that is shown holds something.
placement::Workload full_workload() {
  placement::Workload workload;
  workload.key = {"uid-new", "main", 3, "sandbox-new"};
  workload.pod_name = "web-7f";
  workload.pod_namespace = "shop";
  workload.runtime_handler = "runc";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand = {2000, 2000, 64 << 20, true, 128 << 20, {{"1GB", 4}, {"2MB", 6}}};
  workload.pod_demand = workload.demand;
  workload.devices = {"/dev/a", "/dev/b"};
  workload.cdi_devices = {"vendor.com/gpu=0"};
  workload.env = {{"KEY", "secret"}, {"OTHER", "value"}};
  workload.pod_labels = {{"app", "web"}};
  workload.pod_annotations = {{"topolet.io/cpus", "exclusive"}};
  workload.annotations = {{"mine", "yes"}};
  workload.settings = {{"cpus", "exclusive"}};
  workload.used_devices = {"0000:65:00.0"};
  return workload;
}

std::shared_ptr<const placement::PolicyRequest> request_on(const std::string& machine, bool exclusive) {
  const std::shared_ptr<const topology::Topology> topology = topology::discover({.synthetic = machine}).value();
  placement::LedgerSnapshot ledger;
  ledger.generation = 9;
  ledger.allowed = topology->allowed;
  ledger.reserved = {0};
  ledger.exclusive = {2, 3};
  ledger.withheld = {4};
  ledger.pool = ledger.allowed - ledger.reserved - ledger.exclusive - ledger.withheld;
  placement::LedgerEntry alone;
  alone.key = {"uid-1", "db", 1, "sandbox-1"};
  alone.qos = placement::Qos::kGuaranteed;
  alone.placement = {placement::Mode::kExclusive, ledger.exclusive, ledger.withheld, NodeSet{0}, {}};
  alone.demand = {2000, 2000, 96 << 20, false, 0, {{"2MB", 1 << 21}}};
  alone.settings = {{"smt", "isolate"}};
  alone.used_devices = {"0000:17:00.0"};
  ledger.entries.push_back(alone);
  for (const char* uid : {"uid-2", "uid-3"}) {
    placement::LedgerEntry shares;
    shares.key = {uid, "web", 0, "sandbox"};
    shares.placement = {placement::Mode::kShared, ledger.pool, {}, {}, {}};
    shares.demand.cpu_request_milli = 500;
    ledger.entries.push_back(shares);
  }
  placement::Workload workload = full_workload();
  if (!exclusive) workload.demand.cpu_request_milli = 1500;
  return std::make_shared<const placement::PolicyRequest>(
      placement::make_request(topology, std::move(ledger), std::move(workload),
                              placement::make_candidates(*topology, topology->allowed), {}, false));
}

std::string placement_of(const placement::Decision& decision) {
  const placement::Placement& placement = decision.placement;
  return fmt::format("{} {} cpus {} withheld {} mems {} nodes {}", decision.denied, static_cast<int>(placement.mode),
                     placement.cpus.to_string(), placement.withheld.to_string(), placement.mems.to_string(),
                     decision.nodes.to_string());
}

struct Scribble {
  std::string call;
  std::string target;
};

std::shared_ptr<PluginPolicy> scribbler(const Scribble& scribble) {
  return start_plugin(TOPOLET_BROKEN_DIR, "scribbles", {{"in", scribble.call}, {"to", scribble.target}});
}

class ConstWriting : public ::testing::Test {
 protected:
  placement::Decision decide(const std::vector<PluginVote>& votes,
                             const std::shared_ptr<const placement::PolicyRequest>& request) {
    return thread_.run_as<placement::Decision>(
        in_this_order(votes), [request](const auto& asked) { return placement::decide(*request, {}, asked); });
  }
  PluginStatistics state_of(const std::string& name) {
    for (const PluginStatistics& state : thread_.states()) {
      if (state.name == name) return state;
    }
    return {};
  }

  std::ostringstream lines_;
  std::int64_t now_ms_ = 0;
  PolicyThread thread_{
      {.deadline = milliseconds(60'000),
       .decision_time = milliseconds(600'000),
       .clock = {.steady = [this] { return std::chrono::steady_clock::time_point(milliseconds(now_ms_)); }},
       .log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_))}};
};

class InEveryCall : public ConstWriting, public ::testing::WithParamInterface<const char*> {};

const std::vector<std::string>& targets() {
  static const std::vector<std::string> kAll = {"words",  "strings",    "lists",   "demand",    "workload",
                                                "ledger", "candidates", "request", "arguments", "everything"};
  return kAll;
}

/// The calls that are told apart by what they are shown have one name.
std::string name_of(const std::string& call) { return call == "review" ? "pick" : call; }

TEST_P(InEveryCall, ChangesNothingForAnybodyElse) {
  const std::string call = GetParam();
  // On ten nodes policies are asked for proposals.
  for (const char* machine : {"pack:2 numa:1 core:4 pu:2", "pack:10 numa:1 core:2 pu:2"}) {
    for (const bool exclusive : {true, false}) {
      const auto request = request_on(machine, exclusive);
      const std::string before = all_of(*request);
      const PluginVote numa{"numa", start_plugin(TOPOLET_BUILT_PLUGINS, "numa")};
      Witness alone;
      const std::string expected = placement_of(decide({alone.vote(), numa}, request));
      for (const std::string& target : targets()) {
        SCOPED_TRACE(fmt::format("{} on {}, exclusive: {}", target, machine, exclusive));
        const PluginVote scribbles{"scribbles", scribbler({call, target})};
        Witness beside;
        const placement::Decision decision = decide({scribbles, beside.vote(), numa}, request);
        EXPECT_EQ(placement_of(decision), expected);
        // Without the vote that was lost the CPUs are chosen anew.
        if (name_of(call) != "pick") {
          EXPECT_EQ(beside.notes(), alone.notes());
        }
        EXPECT_THAT(beside.lines(), IsSubsetOf(alone.lines()));
        EXPECT_EQ(all_of(*request), before);
        ASSERT_TRUE(state_of("scribbles").quarantine.empty() || thread_.reset("scribbles"));
        now_ms_ += 3'600'000;
      }
    }
  }
  EXPECT_THAT(lines_.str(),
              HasSubstr("plugin scribbles: " + name_of(call) + " wrote to memory that it was lent to read ("));
  EXPECT_GT(state_of("scribbles").lost.failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, InEveryCall, ::testing::Values("score", "propose", "pick", "review", "adjust"));

TEST_F(ConstWriting, CostsThePluginItsVoteAndNamesTheCall) {
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  const placement::Decision decision = decide({{"scribbles", scribbler({"score", "words"})}}, request);
  EXPECT_THAT(decision.verdicts.lost_votes,
              ElementsAre("scribbles: score wrote to memory that it was lent to read (the workload and the candidates, "
                          "the ledger)"));
  EXPECT_THAT(decision.reason, HasSubstr("scribbles lost its vote"));
  const placement::Decision picked = decide({{"scribbles", scribbler({"pick", "arguments"})}}, request);
  EXPECT_THAT(picked.verdicts.lost_votes,
              ElementsAre("scribbles: pick wrote to memory that it was lent to read (the arguments of the call)"));
}

TEST_F(ConstWriting, QuarantinesAtTheThirdTime) {
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  const PluginVote scribbles{"scribbles", scribbler({"score", "strings"})};
  for (int i = 0; i < 3; ++i) decide({scribbles}, request);
  EXPECT_THAT(
      state_of("scribbles").quarantine,
      HasSubstr("failed 3 times in 10 minutes, last: scribbles: score wrote to memory that it was lent to read"));
}

TEST_F(ConstWriting, InEventsAndTicksChangesNothingForOthersEither) {
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  ContainerEvent container_event;
  container_event.workload = request->workload;
  container_event.placement = request->ledger.entries[0].placement;
  container_event.topology = request->topology;
  const auto told = std::make_shared<const ContainerEvent>(container_event);
  const auto ledger = std::make_shared<const TickSnapshot>(TickSnapshot{request->topology, request->ledger});
  const std::string before = all_of(*request);
  Witness alone;
  thread_.publish({alone.vote()}, told);
  thread_.tick({alone.vote()}, [&] { return ledger; });
  for (const std::string& target : targets()) {
    SCOPED_TRACE(target);
    now_ms_ += 3'600'000;
    const PluginVote scribbles{"scribbles", scribbler({"every-call", target})};
    Witness beside;
    const std::uint64_t failed = state_of("scribbles").lost.failed;
    thread_.publish({scribbles, beside.vote()}, told);
    EXPECT_THAT(thread_.tick({scribbles, beside.vote()}, [&] { return ledger; }), IsEmpty());
    EXPECT_EQ(beside.notes(), alone.notes());
    EXPECT_EQ(all_of(*request), before);
    EXPECT_EQ(container_event.workload, told->workload);
    if (target != "candidates" && target != "request") {
      EXPECT_GT(state_of("scribbles").lost.failed, failed);
    }
  }
  EXPECT_THAT(lines_.str(), HasSubstr("scribbles: notify wrote to memory that it was lent to read"));
  EXPECT_THAT(lines_.str(), HasSubstr("scribbles: tick wrote to memory that it was lent to read"));
}

TEST_F(ConstWriting, ByACallThatWasAbandonedReachesNobody) {
  PolicyThread thread({.deadline = milliseconds(1000), .decision_time = milliseconds(600'000), .clock = {}});
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  const auto decide_on = [&](const std::vector<PluginVote>& votes) {
    return placement_of(thread.run_as<placement::Decision>(
        votes, [request](const auto& asked) { return placement::decide(*request, {}, asked); }));
  };
  Witness alone;
  const std::string expected = decide_on({alone.vote()});

  std::atomic<bool> is_open = false;
  std::atomic<const void*> held = nullptr;
  std::atomic<const void*> shown_later = nullptr;
  Witness late;
  late.during_score = [&](const topolet_request& shown) -> std::int32_t {
    const topolet_set cpus = sdk::entries(*shown.ledger)[0].cpus;
    held = cpus.words;
    while (!is_open) {
      const_cast<std::uint64_t*>(cpus.words)[0] ^= 1U;
      std::this_thread::yield();
    }
    return TOPOLET_OK;
  };
  PluginVote hangs = late.vote();
  hangs.name = "late";
  Witness beside;
  beside.during_score = [&](const topolet_request& shown) -> std::int32_t {
    shown_later = sdk::entries(*shown.ledger)[0].cpus.words;
    return TOPOLET_OK;
  };
  EXPECT_EQ(decide_on({hangs, beside.vote()}), expected);
  EXPECT_EQ(beside.notes(), alone.notes());
  EXPECT_NE(shown_later.load(), held.load());
  Witness next;
  EXPECT_EQ(decide_on({next.vote()}), expected) << "while the call is still inside";
  EXPECT_EQ(next.notes(), alone.notes());
  is_open = true;
  while (thread.has_abandoned_calls()) std::this_thread::yield();
  Witness last;
  EXPECT_EQ(decide_on({last.vote()}), expected);
  EXPECT_EQ(last.notes(), alone.notes());
}

TEST_F(ConstWriting, BetweenTwoDecisionsIsUndoneBeforeTheNext) {
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  const std::uint64_t* shown = nullptr;
  Witness keeps;
  keeps.during_score = [&shown](const topolet_request& seen_request) -> std::int32_t {
    shown = sdk::entries(*seen_request.ledger)[0].cpus.words;
    return TOPOLET_OK;
  };
  const std::string expected = placement_of(decide({keeps.vote()}, request));
  const_cast<std::uint64_t*>(shown)[0] = 0;  // as a thread of its own may do it
  Witness next;
  const placement::Decision decision = decide({next.vote()}, request);
  EXPECT_EQ(placement_of(decision), expected);
  EXPECT_EQ(next.notes(), keeps.notes());
  EXPECT_THAT(decision.verdicts.lost_votes, IsEmpty());
  EXPECT_THAT(lines_.str(), HasSubstr("the ledger that plugins were lent was written to when they had returned"));
}

TEST_F(ConstWriting, OfTheOptionsFailsTheCreation) {
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "scribbles");
  ASSERT_TRUE(library) << library.error().message;
  const config::OptionValues others = {{"numa.policy", "restricted"}};
  for (const char* target : {"strings", "lists", "arguments"}) {
    const auto policy =
        library->create({{"in", "create"}, {"to", target}}, make_silent_log(), {.configuration = others});
    ASSERT_FALSE(policy) << target;
    EXPECT_EQ(policy.error().message,
              "plugin scribbles: create wrote to memory that it was lent to read (its options)");
  }
  EXPECT_EQ(others.find("numa.policy")->second, "restricted");
  EXPECT_TRUE(library->create({{"to", "strings"}}, make_silent_log(), {.configuration = others}));
}

TEST_F(ConstWriting, OfTopologyHostAndSinksIsImpossible) {
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  const AbiTopology topology(request->topology);
  const topolet_topology& machine = topology.view();
  for (const void* shown : std::vector<const void*>{&machine, machine.pus, machine.nodes, machine.allowed.words,
                                                    machine.cores, machine.cores[0].words, machine.distances}) {
    EXPECT_TRUE(is_read_only_lent(shown));
  }
  PluginHost host("any", make_silent_log(), std::make_shared<InMemoryPluginState>());
  EXPECT_TRUE(is_read_only_lent(host.view()));
  EXPECT_TRUE(is_read_only_lent(&host.sinks()));
  for (const char* id : {TOPOLET_LOG_ID, TOPOLET_STATE_ID}) {
    EXPECT_TRUE(is_read_only_lent(host.view()->get_capability(host.view(), view_of(id))));
  }
}

TEST_F(ConstWriting, IsLookedForWithoutCopyingALedgerThatIsTheSame) {
  std::vector<const void*> shown;
  Witness looks;
  looks.during_score = [&shown](const topolet_request& request) -> std::int32_t {
    shown.push_back(request.ledger->entries);
    return TOPOLET_OK;
  };
  const auto request = request_on("pack:2 numa:1 core:4 pu:2", true);
  decide({looks.vote()}, request);
  decide({looks.vote()}, std::make_shared<const placement::PolicyRequest>(*request));
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0], shown[1]);

  const std::string before = looks.notes();
  placement::PolicyRequest changed = *request;
  changed.ledger.entries = {};
  changed.ledger.generation = 9;
  decide({looks.vote()}, std::make_shared<const placement::PolicyRequest>(changed));
  EXPECT_THAT(looks.notes().substr(before.size()), Not(HasSubstr("uid-1"))) << "the generation is not all that counts";
}

}  // namespace
}  // namespace topolet::plugin
