// What plugins of an earlier minor version of the ABI are shown by a host that knows more values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/call/shown_views.hpp"
#include "core/plugin/call/values_by_minor.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// A value that no minor has yet.
constexpr std::uint8_t kLater = 40;

/// The host of a later minor, in which the value kLater of all enumerations is new.
ValuesByMinor host_with_later_values() {
  ValuesByMinor later = kValuesByMinor;
  later.set_host_minor(1);
  for (const AbiValues of :
       {AbiValues::kAsks, AbiValues::kCacheKind, AbiValues::kCertainty, AbiValues::kCpuSource, AbiValues::kDomainKind,
        AbiValues::kEventKind, AbiValues::kMode, AbiValues::kOccasion, AbiValues::kOsDeviceKind, AbiValues::kQos})
    later.add(of, 1, kLater);
  later.add(AbiValues::kWhyShared, 1, TOPOLET_SHARED_BURSTABLE);
  later.add(AbiValues::kRequestFlags, 1, TOPOLET_REQUEST_STAYS);
  later.add(AbiValues::kEntryFlags, 1, TOPOLET_ENTRY_STARTED);
  later.add(AbiValues::kEventFlags, 1, TOPOLET_EVENT_ADOPTED);
  return later;
}
const ValuesByMinor kLaterHost = host_with_later_values();
const KnownValues kOlderPlugin(kLaterHost, 0);
const KnownValues kNewerPlugin(kLaterHost, 1);

std::shared_ptr<const topology::Topology> later_machine() {
  auto machine = std::make_shared<topology::Topology>(*two_node_request()->topology);
  machine->domains[1].kind = static_cast<topology::DomainKind>(kLater);
  machine->caches = {{2, topology::CacheKind::kData, 1 << 20, CpuSet{4, 5}},
                     {2, static_cast<topology::CacheKind>(kLater), 1 << 20, CpuSet{4, 5}}};
  machine->os_devices = {
      {"x0", "", static_cast<topology::OsDeviceKind>(kLater), topology::kNoPosition, CpuSet{0}, NodeSet{0}, {}}};
  return machine;
}

placement::LedgerEntry later_entry() {
  placement::LedgerEntry entry;
  entry.key = {"uid-2", "batch", 0, "sandbox-2"};
  entry.qos = static_cast<placement::Qos>(kLater);
  entry.placement.mode = static_cast<placement::Mode>(kLater);
  entry.demand.cpu_request_certainty = static_cast<placement::Certainty>(kLater);
  entry.started = entry.pending = true;
  return entry;
}

/// Every value that a request shows is a later one.
std::shared_ptr<placement::PolicyRequest> later_request() {
  const auto request = two_node_request();
  request->topology = later_machine();
  request->ledger.entries.push_back(later_entry());
  request->workload.qos = static_cast<placement::Qos>(kLater);
  request->workload.demand.cpu_request_certainty = static_cast<placement::Certainty>(kLater);
  request->workload.pod_demand = request->workload.demand;
  request->candidates[0].kind = static_cast<topology::DomainKind>(kLater);
  request->occasion = static_cast<placement::Occasion>(kLater);
  request->from = static_cast<placement::CpuSource>(kLater);
  request->stay_near = NodeSet{0};
  request->common_options.whole_cores = true;
  return request;
}

std::shared_ptr<placement::PolicyRequest> later_shared_request() {
  const auto request = later_request();
  request->share(placement::NotExclusive::kBurstable);
  request->shared_mode = static_cast<placement::Mode>(kLater);
  return request;
}

using Values = std::map<std::string, std::int64_t>;

void read_topology(const topolet_topology& topology, Values& values) {
  values["domain 1"] = TOPOLET_AT(topolet_domain, topology.domains, topology.domain_stride, 1)->kind;
  values["cache 0"] = TOPOLET_AT(topolet_cache, topology.caches, topology.cache_stride, 0)->kind;
  values["cache 1"] = TOPOLET_AT(topolet_cache, topology.caches, topology.cache_stride, 1)->kind;
  values["OS device"] = TOPOLET_AT(topolet_os_device, topology.os_devices, topology.os_device_stride, 0)->kind;
}

void read_ledger(const topolet_ledger& ledger, Values& values) {
  const auto* entry = TOPOLET_AT(topolet_ledger_entry, ledger.entries, ledger.entry_stride, 0);
  values["entry's QoS"] = entry->qos;
  values["entry's mode"] = entry->mode;
  values["entry's certainty"] = entry->demand->cpu_request_certainty;
  values["entry's flags"] = entry->flags;
}

void read_workload(const topolet_workload& workload, Values& values) {
  values["QoS"] = workload.qos;
  values["certainty"] = workload.demand->cpu_request_certainty;
  values["pod's certainty"] = workload.pod_demand->cpu_request_certainty;
}

/// Every value of an enumeration and all flags.
Values values_in(const topolet_request& request) {
  Values values;
  read_topology(*request.topology, values);
  read_ledger(*request.ledger, values);
  read_workload(*request.workload, values);
  values["candidate 0"] = TOPOLET_AT(topolet_candidate, request.candidates, request.candidate_stride, 0)->kind;
  values["candidate 1"] = TOPOLET_AT(topolet_candidate, request.candidates, request.candidate_stride, 1)->kind;
  values["occasion"] = request.occasion;
  values["mode"] = request.mode;
  values["CPU source"] = request.cpu_source;
  values["why shared"] = request.why_shared;
  values["flags"] = request.flags;
  return values;
}

Values values_shown(const placement::PolicyRequest& request, const KnownValues& known) {
  const auto topology = std::make_shared<const AbiTopology>(request.topology, known);
  return values_in(AbiRequest(request, topology, LentMemory{}, known).view());
}

const Values kShownToOlder = {{"CPU source", TOPOLET_CPUS_FROM_POOL},
                              {"OS device", TOPOLET_OS_DEVICE_OTHER},
                              {"QoS", TOPOLET_QOS_BESTEFFORT},
                              {"cache 0", TOPOLET_CACHE_DATA},
                              {"cache 1", TOPOLET_CACHE_UNIFIED},
                              {"candidate 0", TOPOLET_DOMAIN_MACHINE},
                              {"candidate 1", TOPOLET_DOMAIN_NODE},
                              {"certainty", TOPOLET_CERTAINTY_UNKNOWN},
                              {"domain 1", TOPOLET_DOMAIN_MACHINE},
                              {"entry's QoS", TOPOLET_QOS_BESTEFFORT},
                              {"entry's certainty", TOPOLET_CERTAINTY_UNKNOWN},
                              {"entry's flags", TOPOLET_ENTRY_PENDING},
                              {"entry's mode", TOPOLET_MODE_FOREIGN},
                              {"flags", TOPOLET_REQUEST_WHOLE_CORES},
                              {"mode", TOPOLET_MODE_EXCLUSIVE},
                              {"occasion", TOPOLET_OCCASION_MOVE},
                              {"pod's certainty", TOPOLET_CERTAINTY_UNKNOWN},
                              {"why shared", TOPOLET_SHARED_NOT}};

const Values kShownToNewer = {{"CPU source", kLater},
                              {"OS device", kLater},
                              {"QoS", kLater},
                              {"cache 0", TOPOLET_CACHE_DATA},
                              {"cache 1", kLater},
                              {"candidate 0", kLater},
                              {"candidate 1", TOPOLET_DOMAIN_NODE},
                              {"certainty", kLater},
                              {"domain 1", kLater},
                              {"entry's QoS", kLater},
                              {"entry's certainty", kLater},
                              {"entry's flags", TOPOLET_ENTRY_PENDING | TOPOLET_ENTRY_STARTED},
                              {"entry's mode", kLater},
                              {"flags", TOPOLET_REQUEST_WHOLE_CORES | TOPOLET_REQUEST_STAYS},
                              {"mode", TOPOLET_MODE_EXCLUSIVE},
                              {"occasion", kLater},
                              {"pod's certainty", kLater},
                              {"why shared", TOPOLET_SHARED_NOT}};

TEST(AbiRequest, ShowsAPluginNoValueThatItsMinorDoesNotHave) {
  EXPECT_EQ(values_shown(*later_request(), kOlderPlugin), kShownToOlder);
  EXPECT_EQ(values_shown(*later_request(), kNewerPlugin), kShownToNewer);
}

TEST(AbiRequest, ShowsAPluginNoReasonForSharingThatItsMinorDoesNotHave) {
  const Values older = values_shown(*later_shared_request(), kOlderPlugin);
  EXPECT_EQ(older.at("mode"), TOPOLET_MODE_FOREIGN);
  EXPECT_EQ(older.at("why shared"), TOPOLET_SHARED_OTHER);
  const Values newer = values_shown(*later_shared_request(), kNewerPlugin);
  EXPECT_EQ(newer.at("mode"), kLater);
  EXPECT_EQ(newer.at("why shared"), TOPOLET_SHARED_BURSTABLE);
}

TEST(AbiRequest, KnowsTheMinorThatItCanBeShownTo) {
  const auto plain = two_node_request();
  const auto topology = std::make_shared<const AbiTopology>(plain->topology, kNewerPlugin);
  const AbiRequest view(*plain, topology, LentMemory{}, kNewerPlugin);
  EXPECT_EQ(view.newest_minor(), 0U);
  plain->workload.qos = static_cast<placement::Qos>(kLater);
  const AbiRequest later(*plain, topology, LentMemory{}, kNewerPlugin);
  EXPECT_EQ(later.newest_minor(), 1U);
  const AbiRequest translated(*plain, topology, LentMemory{}, kOlderPlugin);
  EXPECT_EQ(translated.newest_minor(), 0U);
}

TEST(AbiLedger, TranslatesContainersThatAreAddedLater) {
  const auto request = two_node_request();
  const AbiTopology topology(request->topology);
  AbiLedger newer(request->ledger, topology, LentMemory{}, kNewerPlugin);
  AbiLedger older(request->ledger, topology, LentMemory{}, kOlderPlugin);
  EXPECT_EQ(newer.newest_minor(), 0U);
  request->ledger.entries.push_back(later_entry());
  newer.update(request->ledger);
  older.update(request->ledger);
  EXPECT_EQ(newer.newest_minor(), 1U);
  EXPECT_EQ(older.newest_minor(), 0U);
  Values shown;
  read_ledger(older.view(), shown);
  EXPECT_EQ(shown["entry's mode"], TOPOLET_MODE_FOREIGN);
}

/// The views of one decision.
struct Decision {
  std::shared_ptr<ViewCache> cache = std::make_shared<ViewCache>(make_silent_log(), Clock{});
  ShownViews views{cache};

  ~Decision() { views.give_back(); }
};

TEST(ShownViews, AreSharedAsLongAsNoLaterValueIsInThem) {
  Decision decision;
  const auto request = two_node_request();
  EXPECT_EQ(&decision.views.request(*request, "new", kNewerPlugin),
            &decision.views.request(*request, "old", kOlderPlugin));
  EXPECT_EQ(decision.cache->topology(request->topology, kNewerPlugin),
            decision.cache->topology(request->topology, kOlderPlugin));
}

TEST(ShownViews, AreMadeForEachMinorThatDoesNotKnowAValue) {
  Decision decision;
  const auto request = later_request();
  const AbiRequest& older = decision.views.request(*request, "old", kOlderPlugin);
  const AbiRequest& newer = decision.views.request(*request, "new", kNewerPlugin);
  EXPECT_EQ(values_in(older.view()), kShownToOlder);
  EXPECT_EQ(values_in(newer.view()), kShownToNewer);
  EXPECT_EQ(&decision.views.request(*request, "as old", kOlderPlugin), &older);
  EXPECT_EQ(&decision.views.request(*request, "as new", kNewerPlugin), &newer);
}

TEST(ShownViews, ShowLedgersOfTicksInTheSameWay) {
  Decision decision;
  const auto request = later_request();
  const AbiTopology topology(request->topology);
  Values older;
  read_ledger(decision.views.ledger(request->ledger, topology, "old", kOlderPlugin).view(), older);
  EXPECT_EQ(older["entry's mode"], TOPOLET_MODE_FOREIGN);
  Values newer;
  read_ledger(decision.views.ledger(request->ledger, topology, "new", kNewerPlugin).view(), newer);
  EXPECT_EQ(newer["entry's mode"], kLater);
}

TEST(ShownViews, TranslateWhereEachPluginIsLentMemoryOfItsOwn) {
  Decision decision;
  const auto request = later_request();
  decision.cache->lend_apart("the test says so");
  EXPECT_EQ(values_in(decision.views.request(*request, "old", kOlderPlugin).view()), kShownToOlder);
  EXPECT_EQ(values_in(decision.views.request(*request, "new", kNewerPlugin).view()), kShownToNewer);
}

TEST(ShownViews, FindAWriteToTheLedgerOfAnEarlierMinor) {
  const auto cache = std::make_shared<ViewCache>(make_silent_log(), Clock{});
  const auto request = later_request();
  const std::uint64_t* kept = nullptr;
  {
    ShownViews views(cache);
    kept = views.request(*request, "old", kOlderPlugin).view().ledger->pool.words;
    views.give_back();
  }
  const_cast<std::uint64_t*>(kept)[0] ^= 1U;
  ShownViews views(cache);
  EXPECT_EQ(views.request(*request, "old", kOlderPlugin).view().ledger->pool.words[0], 255U);
  EXPECT_TRUE(cache->lends_apart());
}

/// What one plugin is told in calls of its own.
struct Told {
  std::vector<std::int32_t> stages;
  std::vector<std::int32_t> kinds;
  Values last;
};

/// A plugin that notes what it is told.
class Listener {
 public:
  explicit Listener(const KnownValues& known) {
    static constexpr auto kOf = [](const topolet_instance* instance) {
      return static_cast<Listener*>(instance->context);
    };
    pick_ = {sizeof(pick_), 0, [](const auto* instance, const auto* request, const auto*) -> std::int32_t {
               kOf(instance)->told.stages.push_back(request->stage);
               return TOPOLET_OK;
             }};
    adjust_ = {sizeof(adjust_), 0, [](const auto* instance, const auto* request, const auto*) -> std::int32_t {
                 kOf(instance)->told.last = {{"mode", request->mode}, {"asks", request->asks}};
                 return TOPOLET_OK;
               }};
    events_ = {sizeof(events_), 0, [](const auto* instance, const auto* event, const auto*) -> std::int32_t {
                 Told& heard = kOf(instance)->told;
                 heard.kinds.push_back(event->kind);
                 heard.last = {{"mode", event->mode}, {"flags", event->flags}};
                 read_workload(*event->workload, heard.last);
                 return TOPOLET_OK;
               }};
    instance_ = {sizeof(instance_), 0, this,
                 [](const topolet_instance* instance, topolet_str id) -> const void* {
                   if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kOf(instance)->pick_;
                   if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kOf(instance)->adjust_;
                   return topolet_str_is(id, TOPOLET_EVENTS_ID) ? &kOf(instance)->events_ : nullptr;
                 },
                 [](const topolet_instance*) {}};
    auto host = std::make_unique<PluginHost>("listener", make_silent_log(), nullptr);
    policy = PluginPolicy::wrap("listener", std::move(host), &instance_).value();
    policy->speak(known);
  }

  Told told;
  std::shared_ptr<PluginPolicy> policy;

 private:
  topolet_pick pick_{};
  topolet_adjust adjust_{};
  topolet_events events_{};
  topolet_instance instance_{};
};

std::vector<std::int32_t> stages_asked(const KnownValues& known) {
  Listener listener(known);
  const auto request = two_node_request();
  const AbiRequest view = abi_view(*request);
  for (const topolet_pick_stage stage : {TOPOLET_PICK_CHOOSE, TOPOLET_PICK_ORDER, TOPOLET_PICK_REVIEW})
    EXPECT_TRUE(listener.policy->pick(view, 0, CpuSet{0, 1}, 2, stage));
  return listener.told.stages;
}

TEST(PluginPolicy, AsksNoPluginInAStageThatItsMinorDoesNotHave) {
  ValuesByMinor later = kLaterHost;
  later.add(AbiValues::kPickStage, 1, TOPOLET_PICK_ORDER);
  EXPECT_THAT(stages_asked({later, 0}), ElementsAre(TOPOLET_PICK_CHOOSE, TOPOLET_PICK_REVIEW));
  EXPECT_THAT(stages_asked({later, 1}), ElementsAre(TOPOLET_PICK_CHOOSE, TOPOLET_PICK_ORDER, TOPOLET_PICK_REVIEW));
}

Values told_to_adjust(const KnownValues& known) {
  Listener listener(known);
  const auto request = two_node_request();
  placement::ChosenPlacement chosen;
  chosen.placement.mode = static_cast<placement::Mode>(kLater);
  EXPECT_TRUE(listener.policy->adjust(abi_view(*request), chosen));
  return listener.told.last;
}

TEST(PluginPolicy, AdjustsWithValuesOfThePluginsMinor) {
  ValuesByMinor later = kLaterHost;
  later.add(AbiValues::kAsks, 1, TOPOLET_ASKS_CREATE);
  EXPECT_THAT(told_to_adjust({later, 0}),
              ElementsAre(Pair("asks", TOPOLET_ASKS_UPDATE), Pair("mode", TOPOLET_MODE_FOREIGN)));
  EXPECT_THAT(told_to_adjust({later, 1}), ElementsAre(Pair("asks", TOPOLET_ASKS_CREATE), Pair("mode", kLater)));
}

ContainerEvent later_event(std::uint8_t kind) {
  const auto request = later_request();
  ContainerEvent event{static_cast<ContainerEvent::Kind>(kind), request->workload, {}, request->topology};
  event.placement.mode = static_cast<placement::Mode>(kLater);
  event.adopted = true;
  return event;
}

TEST(PluginPolicy, TellsAPluginOfNoEventThatItsMinorDoesNotHave) {
  const AbiTopology machine(two_node_request()->topology);
  Listener older(kOlderPlugin);
  Listener newer(kNewerPlugin);
  EXPECT_FALSE(older.policy->hears_of(static_cast<ContainerEvent::Kind>(kLater)));
  EXPECT_TRUE(newer.policy->hears_of(static_cast<ContainerEvent::Kind>(kLater)));
  for (Listener* listener : {&older, &newer}) {
    ASSERT_TRUE(listener->policy->notify(later_event(kLater), machine));
    ASSERT_TRUE(listener->policy->notify(later_event(TOPOLET_EVENT_PLACED), machine));
  }
  EXPECT_THAT(older.told.kinds, ElementsAre(TOPOLET_EVENT_PLACED));
  EXPECT_THAT(newer.told.kinds, ElementsAre(kLater, TOPOLET_EVENT_PLACED));
}

TEST(PluginPolicy, TellsOfEventsWithValuesOfThePluginsMinor) {
  const AbiTopology machine(two_node_request()->topology);
  Listener older(kOlderPlugin);
  ASSERT_TRUE(older.policy->notify(later_event(TOPOLET_EVENT_PLACED), machine));
  EXPECT_THAT(
      older.told.last,
      ElementsAre(Pair("QoS", TOPOLET_QOS_BESTEFFORT), Pair("certainty", TOPOLET_CERTAINTY_UNKNOWN), Pair("flags", 0),
                  Pair("mode", TOPOLET_MODE_FOREIGN), Pair("pod's certainty", TOPOLET_CERTAINTY_UNKNOWN)));
  Listener newer(kNewerPlugin);
  ASSERT_TRUE(newer.policy->notify(later_event(TOPOLET_EVENT_PLACED), machine));
  EXPECT_THAT(newer.told.last,
              ElementsAre(Pair("QoS", kLater), Pair("certainty", kLater), Pair("flags", TOPOLET_EVENT_ADOPTED),
                          Pair("mode", kLater), Pair("pod's certainty", kLater)));
}

TEST(PolicyThread, ShowsEachPluginTheValuesOfItsMinor) {
  const auto says_qos = [](const topolet_request& request, const topolet_score_sink& sink) {
    const std::string qos = std::to_string(request.workload->qos);
    return sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, view_of(qos));
  };
  const Scripted older = scripted_on("older", says_qos);
  const Scripted newer = scripted_on("newer", says_qos);
  older.plugin->speak(kOlderPlugin);
  newer.plugin->speak(kNewerPlugin);
  PolicyThread thread({.deadline = std::chrono::milliseconds(60'000),
                       .decision_time = std::chrono::milliseconds(600'000),
                       .clock = {}});
  const auto answers = thread.run_as<Answers>({vote(newer), vote(older)}, ask_all(later_request()));
  EXPECT_THAT(answers, ElementsAre(std::to_string(kLater), std::to_string(TOPOLET_QOS_BESTEFFORT)));
}

}  // namespace
}  // namespace topolet::plugin
