// A plugin that was built for this minor version of the ABI, and one that was built for a later one, in a host of
// either: they read and answer the same. Compiled for both hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.hpp"
#include "core/plugin/call/kept_page.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

#ifdef TOPOLET_GROWN
constexpr bool kIsLaterHost = true;
#else
constexpr bool kIsLaterHost = false;
#endif

/// How a line of the log begins in which the plugin tells whether a struct has the later field.
constexpr std::string_view kLaterLine = "info every-call: later topolet_";

std::shared_ptr<const topology::Topology> machine_with_devices() {
  auto machine = std::make_shared<topology::Topology>(*two_node_request()->topology);
  machine->l3s = {CpuSet::range(0, 3), CpuSet::range(4, 7)};
  machine->dies = machine->l3s;
  machine->cpu_kinds = {{0, CpuSet{0, 1}}, {topology::kNoPosition, CpuSet{2}}};
  machine->caches = {{3, topology::CacheKind::kUnified, 32 << 20, CpuSet::range(0, 3)},
                     {1, topology::CacheKind::kData, 32 << 10, CpuSet{0, 1}}};
  machine->pci_bridges = {{"", topology::kNoPosition, 0, 0, CpuSet{4}, NodeSet{1}},
                          {"0000:40:01.0", 0, 0x8086, 0x1234, CpuSet{4}, NodeSet{1}}};
  machine->pci_devices = {{"0000:41:00.0", 1, 0x0302, 0x10de, 0x20b0, CpuSet{4, 5}, NodeSet{1}, {{"A", "b"}}},
                          {"0000:42:00.0", 1, 0x0302, 0x10de, 0x20b1, CpuSet{6}, NodeSet{1}, {}}};
  machine->os_devices = {{"card0", "", topology::OsDeviceKind::kGpu, topology::kNoPosition, CpuSet{0}, NodeSet{0}, {}},
                         {"nvml0", "NVML", topology::OsDeviceKind::kGpu, 0, CpuSet{4, 5}, NodeSet{1}, {{"C", "d"}}}};
  machine->isolated = CpuSet{7};
  return machine;
}

placement::Demand some_demand() {
  placement::Demand demand;
  demand.cpu_request_milli = 1500;
  demand.cpu_limit_milli = 2000;
  demand.memory_request_bytes = 1 << 20;
  demand.memory_limit_bytes = 2 << 20;
  demand.memory_request_estimated = true;
  demand.hugepage_limit_bytes = {{"2MB", 4 << 20}, {"1GB", 1 << 30}};
  demand.cpu_request_certainty = placement::Certainty::kEstimated;
  return demand;
}

placement::LedgerEntry entry_of(const std::string& name, placement::Mode mode) {
  placement::LedgerEntry entry;
  entry.key = {"uid-of-" + name, name, 3, "sandbox-of-" + name};
  entry.qos = placement::Qos::kBurstable;
  entry.placement.mode = mode;
  entry.placement.cpus = CpuSet{1};
  entry.placement.withheld = CpuSet{0};
  entry.placement.mems = NodeSet{0};
  entry.demand = some_demand();
  entry.settings = {{"cpus", "shared"}};
  entry.used_devices = {"card0"};
  entry.tags = {{"every-call/group", "g1"}};
  entry.pod_name = "pod-" + name;
  entry.pod_namespace = "shop";
  entry.runtime_handler = "runc";
  entry.pod_labels = {{"app", name}};
  entry.pod_annotations = {{"e", "f"}};
  entry.annotations = {{"g", "h"}};
  entry.devices = {"/dev/x"};
  entry.cdi_devices = {"example.org/x=1"};
  entry.container_id = "id-of-" + name;
  entry.started = true;
  return entry;
}

std::shared_ptr<placement::PolicyRequest> full_request() {
  auto request = two_node_request();
  request->topology = machine_with_devices();
  request->ledger.generation = 17;
  request->ledger.reserved = CpuSet{0};
  request->ledger.pool = CpuSet::range(2, 6);
  request->ledger.exclusive = CpuSet{1};
  request->ledger.withheld = CpuSet{0};
  request->ledger.isolated = CpuSet{7};
  request->ledger.entries.push_back(entry_of("a", placement::Mode::kShared));
  request->ledger.entries.push_back(entry_of("b", placement::Mode::kExclusive));
  placement::Workload& workload = request->workload;
  workload.pod_name = "web-7f";
  workload.pod_namespace = "shop";
  workload.runtime_handler = "kata";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand = some_demand();
  workload.pod_demand.emplace().cpu_request_milli = 3000;
  workload.kubelet_cpus = CpuSet{2, 3};
  workload.kubelet_mems = NodeSet{0};
  workload.devices = {"/dev/z", "/dev/y"};
  workload.cdi_devices = {"example.org/y=2"};
  workload.env = {{"B", "2"}, {"A", "1"}};
  workload.pod_labels = {{"app", "web"}};
  workload.pod_annotations = {{"i", "j"}};
  workload.annotations = {{"k", "l"}};
  workload.settings = {{"every", "call"}};
  workload.pod_nodes = NodeSet{1};
  workload.used_devices = {"0000:41:00.0"};
  workload.tags = {{"every-call/group", "g1"}};
  request->container_id = "c-web";
  request->occasion = placement::Occasion::kResize;
  request->had = {CpuSet{2}, CpuSet{3}, NodeSet{0}};
  request->keep = CpuSet{2};
  request->min_shared_cpus = 2;
  request->largest_exclusive_cpus = 3;
  request->any_rdt_class = true;
  request->settable = placement::all_settable("NRI");
  request->load = std::make_shared<const load::Load>(load::Load{
      {{"id-of-a", {700, 12, std::chrono::milliseconds(500)}}}, {{1, {3500, std::chrono::milliseconds(1000)}}}});
  request->from = placement::CpuSource::kPreferIsolated;
  request->common_options.whole_cores = true;
  return request;
}

/// Calls the plugin of one minor in all ways, and keeps what it logs and what the host makes of its answers.
class Conversation {
 public:
  explicit Conversation(const std::string& dir, const ValuesByMinor& values = kValuesByMinor) {
    introduce_host_as("minors");
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
    sink->set_pattern("%l %v");
    const auto log = std::make_shared<Log>("test", std::move(sink));
    const auto library = PluginLibrary::load(dir, "every-call");
    if (!library) {
      ADD_FAILURE() << library.error().message;
      return;
    }
    minor = library->abi_minor();
    say("weight {}, vendor '{}', URL '{}', description '{}'", library->default_weight(), library->vendor(),
        library->url(), library->description());
    for (const config::OptionSpec& option : library->options())
      say("option {}{} = {}", option.key, option.type == config::OptionType::kString ? ", a text" : "",
          fmt::join(option.defaults, ","));
    auto policy = library->create({{"depth", "5"}}, log,
                                  {.state = std::make_shared<InMemoryPluginState>(),
                                   .configuration = {{"placement.min-shared-cpus", "2"}},
                                   .machine = request->topology,
                                   .purpose = TOPOLET_PURPOSE_SIMULATE,
                                   .deadline = std::chrono::milliseconds(1234),
                                   .values = &values});
    if (!policy) {
      ADD_FAILURE() << policy.error().message;
      return;
    }
    policy_ = *std::move(policy);
  }

  void make_every_call() {
    if (policy_ == nullptr) return;
    say("wants a tick: {}", policy_->wants_tick());
    say("capabilities {}", fmt::join(policy_->capabilities(), " "));
    say("tick interval {}", policy_->tick_interval().count());
    say("annotations {}", fmt::join(*policy_->annotations(), " "));
    for (const auto& mark : policy_->taking_annotations()) say("taking {}={}", mark.name, mark.value);
    say("reads {}; {}", fmt::join(policy_->names_read().env, " "), fmt::join(policy_->names_read().annotations, " "));
    say("codes {}", fmt::join(policy_->codes(), " "));
    decide();
    for (const auto kind : {ContainerEvent::Kind::kPlaced, ContainerEvent::Kind::kExited}) notify(kind);
    tick();
    policy_.reset();
  }

  /// Without what it tells of later fields.
  std::string told() const {
    std::istringstream lines(lines_.str());
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(kLaterLine)) kept += line + '\n';
    }
    return kept;
  }
  /// Which structs of the host it looked for later fields in, and whether they have them.
  std::map<std::string, std::set<std::string>> later() const {
    std::map<std::string, std::set<std::string>> structs;
    std::istringstream lines(lines_.str());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(kLaterLine)) continue;
      const std::string rest = line.substr(line.find("topolet_"));
      structs[rest.substr(0, rest.find(':'))].insert(rest.substr(rest.find(": ") + 2));
    }
    return structs;
  }

  std::uint32_t minor = 0;
  const std::shared_ptr<placement::PolicyRequest> request = full_request();

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    lines_ << "host: " << fmt::format(format, std::forward<Arguments>(arguments)...) << '\n';
  }

  template <class Answer>
  bool is_answered(const Answer& answer) {
    if (!answer) ADD_FAILURE() << answer.error().message;
    return answer.has_value();
  }

  void decide() {
    const AbiRequest view = abi_view(*request);
    if (const auto proposals = policy_->propose(view); is_answered(proposals))
      for (const NodeSet& nodes : *proposals) say("proposed {}", nodes.to_string());
    if (const auto verdicts = policy_->score(view); is_answered(verdicts)) {
      for (const placement::Verdict& verdict : *verdicts)
        say("verdict {} {} '{}'", static_cast<int>(verdict.kind), verdict.score, verdict.reason);
    }
    for (const auto stage : {TOPOLET_PICK_CHOOSE, TOPOLET_PICK_ORDER, TOPOLET_PICK_REVIEW}) pick(view, stage);
    adjust(view);
  }

  void pick(const AbiRequest& view, topolet_pick_stage stage) {
    const CpuSet chosen = stage == TOPOLET_PICK_REVIEW ? CpuSet{2, 3} : CpuSet();
    const auto pick = policy_->pick(view, 0, CpuSet{2, 3}, 2, stage, chosen);
    if (!is_answered(pick)) return;
    say("narrowed to {}, order {}, withheld {}, '{}', unmet '{}', rejected '{}'",
        pick->narrow ? pick->narrow->to_string() : "all", fmt::join(pick->order, ","), pick->withhold.to_string(),
        pick->reason, pick->unmet, pick->rejected);
    for (const auto& share : pick->at_least) say("at least {} of {}", share.count, share.cpus.to_string());
    for (const placement::Replacement& one : pick->replace)
      say("replace {}, other nodes {}: {}", one.key.name, one.move_nodes, one.reason);
  }

  void adjust(const AbiRequest& view) {
    placement::ChosenPlacement chosen;
    chosen.candidate = 1;
    chosen.placement.cpus = CpuSet{2, 3};
    chosen.placement.withheld = CpuSet{1};
    chosen.memory = NodeSet{0, 1};
    const auto adjustment = policy_->adjust(view, chosen);
    if (!is_answered(adjustment)) return;
    say("memory {}, '{}', uses {}", adjustment->mems ? adjustment->mems->to_string() : "any", adjustment->reason,
        fmt::join(adjustment->used_devices, ","));
    const placement::AddedFields& added = adjustment->added;
    for (const auto* fields : {&added.env, &added.annotations, &added.tags, &added.unified})
      for (const auto& [key, value] : *fields) say("adds {}={}", key, value);
    say("RDT class {}", added.rdt_class);
    if (added.memory_policy) say("memory policy {}", describe(*added.memory_policy));
    if (added.scheduler) say("scheduler {}", describe(*added.scheduler));
    if (added.io_priority) say("I/O priority {}", describe(*added.io_priority));
  }

  void notify(ContainerEvent::Kind kind) {
    ContainerEvent event{kind, request->workload, {}, request->topology};
    event.placement.cpus = CpuSet{2, 3};
    event.placement.withheld = CpuSet{1};
    event.placement.mems = NodeSet{1};
    event.sequence = 5;
    event.container_id = "c-web";
    event.reason = "it ended";
    if (kind == ContainerEvent::Kind::kExited) event.exit_code = 137;
    is_ok(policy_->notify(event, AbiTopology(event.topology)));
  }
  static void is_ok(const CallStatus& status) { EXPECT_TRUE(status) << status.error().message; }

  void tick() {
    const AbiTopology topology(request->topology);
    const auto answer =
        policy_->tick({request->topology, request->ledger}, topology, AbiLedger(request->ledger, topology),
                      {std::chrono::milliseconds(99), std::chrono::milliseconds(5)});
    if (!is_answered(answer)) return;
    say("refused: '{}'", answer->refused);
    for (const MoveRequest& move : answer->moves)
      say("move {}, other nodes {}, now {}: {}", move.key.name, move.move_nodes, move.now, move.reason);
  }

  std::ostringstream lines_;
  std::shared_ptr<PluginPolicy> policy_;
};

std::string golden() {
  std::ifstream file(TOPOLET_EVERY_CALL_GOLDEN);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

class EveryCall : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryCall, IsMadeAndAnsweredAlikeWhateverTheMinors) {
  Conversation conversation(GetParam());
  conversation.make_every_call();
  EXPECT_EQ(conversation.minor, GetParam() == std::string(TOPOLET_LATER_PLUGINS) ? 1U : 0U);
  if (std::getenv("TOPOLET_WRITE_GOLDEN") != nullptr) std::ofstream(TOPOLET_EVERY_CALL_GOLDEN) << conversation.told();
  EXPECT_EQ(conversation.told(), golden())
      << "if this change is meant, run with TOPOLET_WRITE_GOLDEN=1 and read the difference";
}

INSTANTIATE_TEST_SUITE_P(PluginsOf, EveryCall, ::testing::Values(TOPOLET_FIRST_PLUGINS, TOPOLET_LATER_PLUGINS),
                         [](const auto& plugins) {
                           return plugins.param == std::string(TOPOLET_LATER_PLUGINS) ? "TheLaterMinor"
                                                                                      : "TheFirstMinor";
                         });

/// The structs that a plugin writes, and the host reads.
const std::set<std::string> kWrittenByPlugins = {"topolet_option", "topolet_plugin_entry", "topolet_instance",
                                                 "topolet_score",  "topolet_propose",      "topolet_pick",
                                                 "topolet_adjust", "topolet_events",       "topolet_annotations",
                                                 "topolet_codes",  "topolet_reads",        "topolet_tick"};

TEST(LaterPlugin, FindsALaterFieldInEachStructOfALaterHostAndInNoOther) {
  Conversation conversation(TOPOLET_LATER_PLUGINS);
  conversation.make_every_call();
  const auto found = conversation.later();
  std::ifstream file(TOPOLET_GROWN_STRUCTS);
  std::size_t structs = 0;
  for (std::string name; std::getline(file, name); ++structs) {
    if (kWrittenByPlugins.count(name) > 0) continue;
    const auto struct_found = found.find(name);
    ASSERT_NE(struct_found, found.end()) << name << " was never looked at";
    EXPECT_THAT(struct_found->second, ElementsAre(kIsLaterHost ? "1" : "0")) << name;
  }
  EXPECT_EQ(structs, found.size() + kWrittenByPlugins.size());
}

TEST(FirstPlugin, LooksForNoLaterField) {
  Conversation conversation(TOPOLET_FIRST_PLUGINS);
  conversation.make_every_call();
  EXPECT_THAT(conversation.later(), IsEmpty());
}

TEST(EveryCall, GetsUnsupportedForWhatTheHostDoesNotKnow) {
  const std::string told = golden();
  for (const char* said : {"set a later kind: 9", "replace with a later flag: 9", "unified of a later file: 9",
                           "info every-call: a line of a later level", "option later, a text = as it is"})
    EXPECT_THAT(told, HasSubstr(said));
  EXPECT_THAT(told, Not(HasSubstr("of a later kind'"))) << "nothing is set";
  EXPECT_THAT(told, Not(HasSubstr("memory.later=")));
  EXPECT_THAT(told, Not(HasSubstr(": with a later flag\n")));
}

TEST(EveryCall, ShowsOnlyPurposesAndDomainsOfThePluginsMinorToCreate) {
  ValuesByMinor later = kValuesByMinor;
  later.set_host_minor(1).add(AbiValues::kPurpose, 1, TOPOLET_PURPOSE_SIMULATE);
  later.add(AbiValues::kDomainKind, 1, TOPOLET_DOMAIN_PACKAGE);
  const std::string to_first = Conversation(TOPOLET_FIRST_PLUGINS, later).told();
  EXPECT_THAT(to_first, HasSubstr("create for purpose 1 "));
  EXPECT_THAT(to_first, HasSubstr("domain of kind 3\n"));
  EXPECT_THAT(to_first, Not(HasSubstr("domain of kind 2\n")));
  const std::string to_later = Conversation(TOPOLET_LATER_PLUGINS, later).told();
  EXPECT_THAT(to_later, HasSubstr("create for purpose 2 "));
  EXPECT_THAT(to_later, HasSubstr("domain of kind 2\n"));
}

TEST(PolicyInCpp, OfThisMinorIsAskedByEitherHost) {
  const auto numa = start_plugin(TOPOLET_BUILT_PLUGINS, "numa");
  ASSERT_NE(numa, nullptr);
  const auto request = two_node_request();
  const auto verdicts = numa->score(abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ(verdicts->front().reason, "all 2 CPUs requested fit on node 0 (4 free)");
}

TEST(PolicyInCpp, OfALaterMinorIsAskedByEitherHost) {
  const auto spread = start_plugin(TOPOLET_LATER_PLUGINS, "spread");
  ASSERT_NE(spread, nullptr);
  const auto request = full_request();
  request->workload.pod_labels = {{"app", "a"}};
  const auto verdicts = spread->score(abi_view(*request));
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ(verdicts->front().reason, "other pods with app=a here: 1");
}

}  // namespace
}  // namespace topolet::plugin
