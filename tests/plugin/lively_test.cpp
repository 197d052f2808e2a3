// Statements of plugins after the pick and between decisions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class Lively : public ::testing::Test {
 protected:
  std::shared_ptr<PluginPolicy> start(const std::string& answer) {
    const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
    EXPECT_TRUE(library) << library.error().message;
    auto policy = library->create({{"answer", answer}}, make_silent_log(), {.state = state_});
    if (!policy) ADD_FAILURE() << policy.error().message;
    return policy ? *policy : nullptr;
  }

  Result<placement::Adjustment> adjust(const std::string& answer) { return adjust(*start(answer)); }
  static Result<placement::Adjustment> adjust(PluginPolicy& policy,
                                              const placement::Settable& settable = placement::all_settable("NRI")) {
    const placement::ChosenPlacement chosen{0, {placement::Mode::kExclusive, CpuSet{0, 1}, {}, {}, {}}, NodeSet{0, 1}};
    const auto request = two_node_request();
    auto machine = std::make_shared<topology::Topology>(*request->topology);
    machine->os_devices.emplace_back().name = "NAME";
    machine->pci_devices.emplace_back().address = "0000:65:00.0";
    request->topology = machine;
    request->rdt_classes = {"gold", "value"};
    request->settable = settable;
    return policy.adjust(abi_view(*request), chosen);
  }
  std::string adjust_error(const std::string& answer) {
    const auto adjustment = adjust(answer);
    return adjustment ? "answered" : adjustment.error().message;
  }

  static std::shared_ptr<const ContainerEvent> started(const std::string& name) {
    ContainerEvent container_event;
    container_event.kind = ContainerEvent::Kind::kStarted;
    container_event.workload.key.name = name;
    container_event.workload.env = {{"SECRET", "1"}};
    container_event.topology = two_node_request()->topology;
    return std::make_shared<const ContainerEvent>(std::move(container_event));
  }
  Status notify(const std::string& answer) {
    const auto container_event = started("web");
    return start(answer)->notify(*container_event, AbiTopology(container_event->topology));
  }

  static std::shared_ptr<const TickSnapshot> ledger(placement::Mode mode = placement::Mode::kShared) {
    TickSnapshot view;
    view.topology = two_node_request()->topology;
    placement::LedgerEntry entry;
    entry.key = {"uid-1", "web", 3, "sandbox-1"};
    entry.placement.mode = mode;
    view.ledger.entries.push_back(entry);
    return std::make_shared<const TickSnapshot>(std::move(view));
  }
  Result<TickAnswer> tick(const std::string& answer, placement::Mode mode = placement::Mode::kShared) {
    const auto view = ledger(mode);
    const AbiTopology topology(view->topology);
    return start(answer)->tick(*view, topology, AbiLedger(view->ledger, topology),
                               {.steady = milliseconds(5), .wall = {}});
  }
  /// Returns what was refused of its requests.
  std::string refused(const std::string& answer, placement::Mode mode = placement::Mode::kShared) {
    const auto told = tick(answer, mode);
    return told ? told->refused : told.error().message;
  }

  std::string saved(const std::string& key) { return state_->get("lively", key)->value_or("none"); }

  std::shared_ptr<InMemoryPluginState> state_ = std::make_shared<InMemoryPluginState>();
};

TEST_F(Lively, SetsMemoryVariablesAndAnnotations) {
  const auto adjustment = adjust("good");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_EQ(adjustment->mems, (NodeSet{0, 1}));
  EXPECT_THAT(adjustment->added.env, ElementsAre(std::pair("NAME", "value")));
  EXPECT_THAT(adjustment->added.annotations, ElementsAre(std::pair("NAME", "value")));
  EXPECT_EQ(adjustment->reason, "because");
}

TEST_F(Lively, TellsWhatAContainerUses) {
  const auto adjustment = adjust("uses-a-device");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->used_devices, ElementsAre("NAME", "0000:65:00.0"));
}

TEST_F(Lively, IsNotBelievedToUseADeviceThatTheTopologyDoesNotShow) {
  const auto adjustment = adjust("uses-unplugged");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->used_devices, ElementsAre("NAME"));
}

TEST_F(Lively, NotesValuesByItsName) {
  const auto adjustment = adjust("tags");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->added.tags, ElementsAre(std::pair("lively/NAME", "value"), std::pair("lively/other", "")));
}

TEST_F(Lively, IsRefusedTagsThatMakeNoSense) {
  const std::string begin = "lively: adjust gave an invalid answer: ";
  EXPECT_EQ(adjust_error("tag-twice"), begin + "tag NAME is set twice");
  EXPECT_EQ(adjust_error("tag-no-key"), begin + "tag has no key");
  EXPECT_EQ(adjust_error("tag-long-key"), begin + "tag has 257 bytes, with 'lively/', and 0; at most 256 are allowed");
  EXPECT_EQ(adjust_error("tag-long-value"),
            begin + "tag has 11 bytes, with 'lively/', and 257; at most 256 are allowed");
  EXPECT_EQ(adjust_error("tag-full-length"), "answered");
  EXPECT_EQ(adjust_error("tags-too-many"), begin + "more than 16 tags");
  EXPECT_EQ(adjust_error("tag-not-utf8"), begin + "tag NAME is not UTF-8");
}

TEST_F(Lively, SetsFilesOfTheCgroupAndAnRdtClass) {
  const auto adjustment = adjust("files");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  EXPECT_THAT(adjustment->added.unified, ElementsAre(std::pair("memory.high", "4096")));
  EXPECT_EQ(adjustment->added.rdt_class, "value");
}

TEST_F(Lively, IsNotPutIntoAnRdtClassThatIsNotThere) {
  const auto adjustment = adjust("class-unsupported");
  ASSERT_TRUE(adjustment) << "nothing counts as a mistake";
  EXPECT_EQ(adjustment->added.rdt_class, "");
}

TEST_F(Lively, IsRefusedFilesAndClassesThatMakeNoSense) {
  const std::string begin = "lively: adjust gave an invalid answer: ";
  EXPECT_EQ(adjust_error("file-unsupported"), "answered");
  for (const char* value : {"4k", "-1", "0", "", "+1", "99999999999999999999", " 1", "maximum"})
    EXPECT_EQ(adjust_error(std::string("=") + value), begin + "unified memory.high is neither bytes nor 'max'");
  for (const char* value : {"max", "1", "9223372036854775807"})
    EXPECT_EQ(adjust_error(std::string("=") + value), "answered") << value;
  EXPECT_EQ(adjust_error("file-twice"), begin + "unified memory.high is set twice");
  EXPECT_EQ(adjust_error("class-twice"), begin + "rdt_class is set twice");
  EXPECT_EQ(adjust_error("class-unnamed"), begin + "rdt_class has no name");
  EXPECT_EQ(adjust_error("class-unprintable"), begin + "rdt_class is not printable");
}

TEST_F(Lively, SetsMemoryPolicySchedulerAndIoPriority) {
  const auto adjustment = adjust("settings");
  ASSERT_TRUE(adjustment) << adjustment.error().message;
  using namespace placement;
  EXPECT_EQ(adjustment->added.memory_policy, (MemoryPolicy{MemoryMode::kBind, NodeSet{0}, true, false, true}));
  EXPECT_EQ(adjustment->added.scheduler, (Scheduler{SchedulerClass::kBatch, -3}));
  EXPECT_EQ(adjustment->added.io_priority, (IoPriority{IoClass::kBestEffort, 6}));
}

TEST_F(Lively, HearsAtOnceWhatCannotBeSet) {
  const auto policy = start("settings-unsupported");
  const auto adjustment = adjust(*policy, {.through = "CRI"});
  ASSERT_TRUE(adjustment) << "nothing counts as a mistake";
  EXPECT_EQ(adjustment->added, placement::AddedFields());
  EXPECT_EQ(adjust_error("settings-of-a-later-minor"), "answered");
}

TEST_F(Lively, HearsOfAMemoryPolicyThatTheKernelIsTooOldFor) {
  placement::Settable settable = placement::all_settable("NRI");
  settable.memory_modes &= ~(1U << TOPOLET_MEMORY_WEIGHTED_INTERLEAVE);
  EXPECT_FALSE(adjust(*start("#memory 6 1 0"), settable)->added.memory_policy);
  EXPECT_TRUE(adjust(*start("#memory 3 1 0"), settable)->added.memory_policy);
}

TEST_F(Lively, IsRefusedMemoryPoliciesThatMakeNoSense) {
  const std::string begin = "lively: adjust gave an invalid answer: memory_policy ";
  EXPECT_EQ(adjust_error("memory-policy-twice"), begin + "is set twice");
  EXPECT_EQ(adjust_error("memory-policy-null"), begin + "is a null pointer");
  EXPECT_EQ(adjust_error("#memory 2 5 0"), begin + "names nodes 2, which the machine does not have");
  EXPECT_EQ(adjust_error("#memory 2 5 2"), "answered") << "positions are no nodes of the machine";
  EXPECT_EQ(adjust_error("#memory 3 0 0"), begin + "interleave names no node");
  EXPECT_EQ(adjust_error("#memory 1 3 0"), begin + "preferred names more than one node");
  EXPECT_EQ(adjust_error("#memory 4 1 0"), begin + "local names nodes");
  EXPECT_EQ(adjust_error("#memory 4 0 1"), begin + "local has static or relative nodes");
  EXPECT_EQ(adjust_error("#memory 5 1 3"), begin + "preferred-many has nodes that are both static and relative");
  EXPECT_EQ(adjust_error("#memory 6 1 4"), begin + "weighted-interleave has numa-balancing");
  for (const char* valid : {"#memory 1 1 0", "#memory 2 3 4", "#memory 3 3 1", "#memory 4 0 0", "#memory 5 3 4"})
    EXPECT_EQ(adjust_error(valid), "answered") << valid;
}

TEST_F(Lively, IsRefusedPrioritiesThatMakeNoSense) {
  const std::string begin = "lively: adjust gave an invalid answer: ";
  const auto nice = [&](int value) {
    return begin + fmt::format("scheduler has nice {}; -20 to 19 are allowed, and 0 with idle", value);
  };
  EXPECT_EQ(adjust_error("scheduler-twice"), begin + "scheduler is set twice");
  EXPECT_EQ(adjust_error("#scheduler 0 -21"), nice(-21));
  EXPECT_EQ(adjust_error("#scheduler 3 20"), nice(20));
  EXPECT_EQ(adjust_error("#scheduler 5 1"), nice(1));
  for (const char* valid : {"#scheduler 0 -20", "#scheduler 3 19", "#scheduler 5 0"})
    EXPECT_EQ(adjust_error(valid), "answered") << valid;
  const auto io = [&](int value) {
    return begin + fmt::format("io_priority has priority {}; 0 to 7 are allowed, and 0 with idle", value);
  };
  EXPECT_EQ(adjust_error("io-priority-twice"), begin + "io_priority is set twice");
  EXPECT_EQ(adjust_error("#io 1 8"), io(8));
  EXPECT_EQ(adjust_error("#io 2 -1"), io(-1));
  EXPECT_EQ(adjust_error("#io 3 1"), io(1));
  for (const char* valid : {"#io 1 0", "#io 2 7", "#io 3 0"}) EXPECT_EQ(adjust_error(valid), "answered") << valid;
}

TEST_F(Lively, MayNotSetAnnotationsOfOthers) {
  const auto refusal = [](const std::string& key) {
    return "lively: adjust gave an invalid answer: annotation " + key + " is not a plugin's to set";
  };
  for (const char* key : {"io.kubernetes.pod.uid", "kubernetes.io/x", "node.alpha.kubernetes.io/x", "cdi.k8s.io/gpu"})
    EXPECT_EQ(adjust_error(std::string("+") + key), refusal(key));
  for (const char* key : {"io.kubernetesx", "mykubernetes.io/x", "kubernetes.io", "example.org/kubernetes.io/x",
                          "k8s.io/x", "topolet.io/x"})
    EXPECT_EQ(adjust_error(std::string("+") + key), "answered") << key;
}

/// Returns the lines of a log that have the text.
std::vector<std::string> lines_with(const std::string& log, const std::string& text) {
  std::istringstream all(log);
  std::vector<std::string> found;
  for (std::string line; std::getline(all, line);) {
    if (line.find(text) != std::string::npos) found.push_back(line);
  }
  return found;
}

TEST_F(Lively, IsNamedOnceForAVariableThatDecidesWhatContainersRun) {
  std::ostringstream text;
  const auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
  const auto policy = library->create({{"answer", "search-paths"}}, log, {.state = state_});
  ASSERT_TRUE(policy) << policy.error().message;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(adjust(**policy));
  EXPECT_THAT(lines_with(text.str(), "plugin lively sets the environment variable PATH of containers"), SizeIs(1));
  EXPECT_THAT(lines_with(text.str(), "plugin lively sets the environment variable LD_PRELOAD of containers"),
              SizeIs(1));
  EXPECT_THAT(lines_with(text.str(), "environment variable"), SizeIs(2)) << text.str();
  EXPECT_THAT(text.str(), Not(HasSubstr("value"))) << "values are secrets";
}

TEST_F(Lively, IsNamedOnceForASettingThatCannotBeMade) {
  std::ostringstream text;
  const auto log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
  const auto policy = library->create({{"answer", "settings-unsupported"}}, log, {.state = state_});
  ASSERT_TRUE(policy) << policy.error().message;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(adjust(**policy, {.through = "NRI 0.9 of cri-o 1.33.1"}));
  for (const char* setting : {"memory policy 'bind'", "a scheduler class", "an I/O priority"}) {
    const std::string begin = std::string("plugin lively wants to set ") + setting;
    EXPECT_THAT(lines_with(text.str(), begin + " of containers, which cannot be done through NRI 0.9 of cri-o 1.33.1"),
                SizeIs(1));
  }
}

TEST_F(Lively, IsRefusedAdjustmentsThatMakeNoSense) {
  const std::string begin = "lively: adjust gave an invalid answer: ";
  EXPECT_EQ(adjust_error("mems-twice"), begin + "mems is set twice");
  EXPECT_EQ(adjust_error("env-twice"), begin + "variable NAME is set twice");
  EXPECT_EQ(adjust_error("env-bad-name"), begin + "variable A has '=' in its name, or a zero byte");
  EXPECT_EQ(adjust_error("env-no-name"), begin + "variable has no name");
  EXPECT_EQ(adjust_error("too-long"), begin + "annotation has 4 and 32769 bytes; the limits are 256 and 32768");
  EXPECT_EQ(adjust_error("too-many"), begin + "more than 64 fields");
  EXPECT_EQ(adjust_error("uses-it-twice"), begin + "device NAME is used twice");
  EXPECT_EQ(adjust_error("uses-no-name"), begin + "a used device has no name");
  EXPECT_EQ(adjust_error("fails"), "lively: adjust failed: because");
}

TEST_F(Lively, MayNotWriteItsStateWhileItDecides) {
  EXPECT_EQ(adjust_error("writes-state"), "answered");
  EXPECT_EQ(saved("NAME"), "value") << "as create() wrote it";
}

TEST_F(Lively, StartsWithoutAStateIfItCan) {
  EXPECT_NE(start_plugin(TOPOLET_BROKEN_DIR, "lively", {{"answer", "stateless"}}), nullptr);
}

TEST_F(Lively, WritesItsStateWhenItHearsOfAnEvent) {
  ASSERT_TRUE(notify(""));
  EXPECT_EQ(saved("web"), "1");
  EXPECT_EQ(state_->get("other", "web")->value_or("none"), "none");
}

TEST_F(Lively, HearsAllThatAnEventSays) {
  ContainerEvent exited = *started("web");
  exited.kind = ContainerEvent::Kind::kExited;
  exited.sequence = 7;
  exited.container_id = "c-web";
  exited.exit_code = 137;
  const AbiTopology machine(exited.topology);
  const auto policy = start("all-of-it");
  ASSERT_TRUE(policy->notify(exited, machine));
  EXPECT_EQ(saved("NAME"), "7 c-web 137 0 ");
  exited.exit_code.reset();
  ASSERT_TRUE(policy->notify(exited, machine));
  EXPECT_EQ(saved("NAME"), "7 c-web 0 2 ");
  exited.kind = ContainerEvent::Kind::kDenied;
  exited.reason = "full";
  exited.adopted = true;
  ASSERT_TRUE(policy->notify(exited, machine));
  EXPECT_EQ(saved("NAME"), "7 c-web 0 1 full");
}

TEST_F(Lively, HearsOfNoKindThatItsMinorDoesNotHave) {
  ContainerEvent later = *started("web");
  later.kind = static_cast<ContainerEvent::Kind>(200);
  const auto policy = start("");
  ASSERT_TRUE(policy->notify(later, AbiTopology(later.topology)));
  EXPECT_EQ(saved("web"), "none");
  EXPECT_FALSE(policy->hears_of(later.kind));
  EXPECT_TRUE(policy->hears_of(ContainerEvent::Kind::kUnpinned));
}

TEST_F(Lively, SaysWhyItCouldNotTakeAnEvent) {
  EXPECT_EQ(notify("fails").error().message, "lively: notify failed: because");
}

const placement::ContainerKey kEntry{"uid-1", "web", 3, "sandbox-1"};
const MoveRequest kToOtherNodes{"lively", kEntry, true, "because", false};

TEST_F(Lively, WishesForAContainerToBePlacedAnew) {
  const auto told = tick("");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(told->moves, ElementsAre(kToOtherNodes));
  EXPECT_THAT(tick("tick-now")->moves, ElementsAre(MoveRequest{"lively", kEntry, false, "because", true}));
}

TEST_F(Lively, IsRefusedAWishThatMakesNoSenseAlone) {
  EXPECT_EQ(refused("tick-unknown"), "a move of entry 1, but there are only 1");
  EXPECT_EQ(refused("tick-twice"), "two moves of entry 0");
  EXPECT_EQ(refused("tick-no-reason"), "the reason to move entry 0 is a null pointer");
  EXPECT_EQ(refused("tick-foreign", placement::Mode::kForeign), "a move of entry 0, which topolet does not place");
  for (const char* answer : {"tick-unknown", "tick-twice", "tick-no-reason"})
    EXPECT_THAT(tick(answer)->moves, ElementsAre(kToOtherNodes)) << answer << ": the others stand";
}

TEST_F(Lively, WishesNothingByAFlagThatTheHostDoesNotKnow) {
  const auto told = tick("tick-flags");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(told->moves, IsEmpty());
  EXPECT_EQ(told->refused, "") << "it is no fault";
}

TEST_F(Lively, IsRefusedAnIntervalTooShort) {
  const auto library = PluginLibrary::load(TOPOLET_BROKEN_DIR, "lively");
  const auto policy = library->create({{"answer", "hasty"}}, make_silent_log(), {.state = state_});
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message, "lively: its tick interval of 1 ms is not between 100 and 86400000 ms");
}

class LivelyOnThread : public Lively {
 protected:
  std::vector<PluginVote> votes(const std::string& answer) {
    return {{"lively", start(answer)}, {"numa", start_plugin(TOPOLET_BUILT_PLUGINS, "numa")}};
  }
  PluginStatistics state_of_lively() { return thread_.states().at(0); }

  std::atomic<std::int64_t> now_ms_ = 0;
  PolicyThread thread_{
      {.deadline = milliseconds(250),
       .decision_time = milliseconds(0),  // events and ticks are not decisions
       .clock = {.steady = [this] { return std::chrono::steady_clock::time_point(milliseconds(now_ms_)); }}}};
};

TEST_F(LivelyOnThread, HearsOfEachEventOnce) {
  thread_.publish(votes(""), started("web"));
  EXPECT_EQ(saved("web"), "1");
  EXPECT_EQ(state_of_lively().calls, 1U);
  EXPECT_EQ(thread_.states().size(), 1U) << "numa hears no events and is not asked";
}

TEST_F(LivelyOnThread, IsLeftBehindByAnEventThatItDoesNotComeBackFrom) {
  const auto all = votes("stuck");
  thread_.publish(all, started("web"));
  EXPECT_EQ(state_of_lively().lost.total(), 1U);
  while (thread_.has_abandoned_calls()) std::this_thread::yield();
  EXPECT_EQ(saved("NAME"), "value");
  EXPECT_EQ(state_of_lively().calls, 1U) << "a run that is repeated must not tell it again";
}

TEST_F(LivelyOnThread, IsQuarantinedForNonsenseInTicks) {
  const auto all = votes("tick-unknown");
  for (int i = 0; i < 3; ++i, now_ms_ += 1000) {
    EXPECT_THAT(thread_.tick(all, [] { return ledger(); }), ElementsAre(kToOtherNodes));
    EXPECT_EQ(state_of_lively().quarantine.empty(), i < 2) << "two wrong wishes of a tick are one fault: " << i;
  }
  EXPECT_THAT(state_of_lively().quarantine, HasSubstr("a move of entry 1, but there are only 1"));
  EXPECT_EQ(state_of_lively().lost.total(), 3U);
  EXPECT_THAT(thread_.tick(all, [] { return ledger(); }), IsEmpty());
  EXPECT_EQ(state_of_lively().calls, 3U);
}

TEST_F(LivelyOnThread, TicksWhenItsIntervalHasPassed) {
  const auto all = votes("");
  EXPECT_EQ(thread_.until_tick(all), milliseconds(0));
  EXPECT_EQ(thread_.tick(all, [] { return ledger(); }).size(), 1U);
  EXPECT_EQ(thread_.until_tick(all), milliseconds(1000));
  now_ms_ = 999;
  EXPECT_EQ(thread_.until_tick(all), milliseconds(1));
  EXPECT_THAT(thread_.tick(all,
                           []() -> std::shared_ptr<const TickSnapshot> {
                             ADD_FAILURE() << "nobody is due";
                             return ledger();
                           }),
              IsEmpty());
  now_ms_ = 1000;
  EXPECT_EQ(thread_.tick(all, [] { return ledger(); }).size(), 1U);
  EXPECT_EQ(thread_.until_tick({all[1]}), std::nullopt);
}

TEST(InMemoryPluginState, KeepsThePluginsApartAndWalksTheirKeys) {
  InMemoryPluginState state;
  ASSERT_TRUE(state.set("b", "y", "1"));
  ASSERT_TRUE(state.set("b", "x", "2"));
  ASSERT_TRUE(state.set("c", "a", "3"));
  EXPECT_EQ(*state.next("b", ""), "x");
  EXPECT_EQ(*state.next("b", "x"), "y");
  EXPECT_EQ(*state.next("b", "y"), std::nullopt);
  ASSERT_TRUE(state.remove("b", "x"));
  ASSERT_TRUE(state.remove("b", "x"));
  EXPECT_EQ(*state.get("b", "x"), std::nullopt);
  EXPECT_EQ(*state.get("c", "a"), "3");
}

}  // namespace
}  // namespace topolet::plugin
