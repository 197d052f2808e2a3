#include "core/engine/state/cfs_quota.hpp"
#include "core/cri/messages/shown_status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/converge/shown_quotas.hpp"
#include "core/engine/state/container_cpuset.hpp"
#include "core/engine/state/transitions.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/support/cri.pb.h"

namespace topolet::engine {
namespace {

using operations::CfsQuota;

constexpr std::chrono::milliseconds kNow{1000};

placement::PlacementRules rule(bool drops) {
  placement::PlacementRules rules;
  rules.drop_exclusive_quota = drops;
  return rules;
}

Allocation dropped(const std::string& name, const CpuSet& cpus) {
  Allocation allocation = exclusive(name, cpus);
  allocation.quota = QuotaState::kDropped;
  return allocation;
}

TEST(CfsQuota, IsNotToldUnlessItWasEverDropped) {
  Allocation allocation = exclusive("a", {1, 2});
  settle_quota(allocation, false);
  EXPECT_EQ(quota_to_tell(allocation), std::nullopt);
  settle_quota(allocation, true);
  EXPECT_EQ(quota_to_tell(allocation), (CfsQuota{-1, 100000}));
  settle_quota(allocation, false);
  EXPECT_EQ(quota_to_tell(allocation), (CfsQuota{200000, 100000}));
}

TEST(CfsQuota, ComesBackWithThePeriodThatWasAskedFor) {
  Allocation allocation = dropped("a", {1, 2});
  allocation.workload.demand.cpu_period_us = 20000;
  EXPECT_EQ(quota_to_tell(allocation), (CfsQuota{-1, 20000}));
  allocation.placement.mode = placement::Mode::kShared;
  settle_quota(allocation, true);
  EXPECT_EQ(allocation.quota, QuotaState::kGivenBack);
  EXPECT_EQ(quota_to_tell(allocation), (CfsQuota{40000, 20000}));
  EXPECT_EQ(quota_to_show(allocation), (CfsQuota{40000, 20000}));
}

TEST(CfsQuota, OfAContainerWithoutALimitIsNobodysToSet) {
  Allocation allocation = exclusive("a", {1, 2});
  allocation.workload.demand.cpu_limit_milli = 0;
  settle_quota(allocation, true);
  EXPECT_EQ(quota_to_tell(allocation), std::nullopt);
  allocation = dropped("a", {1, 2});
  allocation.workload.demand.cpu_limit_milli = 0;
  settle_quota(allocation, false);
  EXPECT_EQ(quota_to_tell(allocation)->quota_us, -1) << "a resize took its limit";
  EXPECT_EQ(quota_to_show(allocation), std::nullopt);
}

TEST(CfsQuota, FollowsTheModeInEveryTransition) {
  Ledger ledger = ledger_of({});
  const auto happen = [&](const Event& event) {
    const Transition made = compute_transition(ledger, rule(true), kNow, event);
    ledger.apply(made);
    return ledger.find(guaranteed("a", 2).key)->quota;
  };
  EXPECT_EQ(happen(event::CreateAdmitted{guaranteed("a", 2), exclusive_on({0, 1})}), QuotaState::kDropped);
  happen(event::CreateConfirmed{guaranteed("a", 2).key, "c1", {CpuSet{0, 1}, {}}});
  placement::Workload less = guaranteed("a", 2);
  less.demand.cpu_request_milli = less.demand.cpu_limit_milli = 1500;
  Plan plan = plan_of({placement::Mode::kShared, CpuSet::range(0, 7), {}, {}}, CpuSet::range(0, 7));
  EXPECT_EQ(happen(event::Moved{less, plan, AuditEvent::kResized}), QuotaState::kGivenBack);
  EXPECT_EQ(happen(event::Moved{guaranteed("a", 2), exclusive_on({0, 1}), AuditEvent::kResized}), QuotaState::kDropped);
}

TEST(CfsQuota, FollowsAnotherConfigurationAfterARestart) {
  for (const bool drops : {true, false}) {
    Ledger ledger = ledger_of({drops ? exclusive("a", {1}) : dropped("a", {1}), shared("b")});
    const Transition made = compute_transition(ledger, rule(drops), kNow, event::Restarted{});
    ledger.apply(made);
    EXPECT_EQ(ledger.find(guaranteed("a", 1).key)->quota, drops ? QuotaState::kDropped : QuotaState::kGivenBack);
    EXPECT_EQ(ledger.find(besteffort("b").key)->quota, QuotaState::kAsAsked);
    EXPECT_EQ(made.changes.size(), 1U);
  }
}

/// A later topoletd would not know of it.
TEST(CfsQuota, IsToldOnceThatIsDurable) {
  const ContainerCpuset durable{CpuSet{1, 2}, {}};
  EXPECT_EQ(agreed_cpuset(durable, dropped("a", {1, 2}))->quota, std::nullopt);
  EXPECT_EQ(agreed_cpuset(desired_cpuset_of(dropped("a", {1, 2})), dropped("a", {1, 2}))->quota->quota_us, -1);
}

class ShownQuotasTest : public ::testing::Test {
 protected:
  ShownQuotasTest() {
    shown_.on_loaded(ledger_);
    answer_.mutable_status()->set_id("c-a");
    answer_.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_quota(-1);
    answer_.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_period(100000);
    answer_.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_shares(2048);
  }
  std::optional<std::string> rewrite(const cri::ObservedMessage& answer) const {
    if (shown_.empty()) return std::nullopt;
    return cri::with_shown_quotas(answer, [this](const std::string& id) { return shown_.quota_of(id); });
  }
  /// As the kubelet reads it.
  runtime::v1::ContainerStatusResponse seen(const std::string& method = "ContainerStatus") const {
    const std::string path = "/runtime.v1.RuntimeService/" + method;
    const std::string bytes = answer_.SerializeAsString();
    const std::string_view all = bytes;
    const std::optional<std::string> rewritten = rewrite({path, {all.substr(0, 5), all.substr(5)}});
    runtime::v1::ContainerStatusResponse shown;
    shown.ParseFromString(rewritten.value_or(bytes));
    return shown;
  }
  std::int64_t quota_seen() const { return seen().status().resources().linux().cpu_quota(); }

  Ledger ledger_ = ledger_of({dropped("a", {1, 2}), exclusive("b", {3})});
  ShownQuotas shown_;
  runtime::v1::ContainerStatusResponse answer_;
};

TEST_F(ShownQuotasTest, AreThoseThatTheKubeletAskedFor) {
  EXPECT_EQ(quota_seen(), 200000);
  runtime::v1::ContainerStatusResponse expected = answer_;
  expected.mutable_status()->mutable_resources()->mutable_linux()->set_cpu_quota(200000);
  EXPECT_EQ(seen().DebugString(), expected.DebugString()) << "and nothing else changes";
}

TEST_F(ShownQuotasTest, AreNotShownForOthersNorInOtherAnswers) {
  EXPECT_EQ(seen("PodSandboxStatus").status().resources().linux().cpu_quota(), -1);
  answer_.mutable_status()->set_id("c-b");
  EXPECT_EQ(quota_seen(), -1);
  answer_.mutable_status()->set_id("c-a");
  answer_.mutable_status()->clear_resources();
  EXPECT_FALSE(seen().status().has_resources()) << "the kubelet would take the rest for none";
}

/// The statuses that a kubelet with the feature gate EventedPLEG reads.
template <class Answer>
class ShownInStatuses : public ShownQuotasTest {
 protected:
  ShownInStatuses() {
    *told_.add_containers_statuses() = status_of("c-b", -1);
    *told_.add_containers_statuses() = status_of("c-a", -1);
    *told_.add_containers_statuses() = status_of("c-c", 50000);
  }
  runtime::v1::ContainerStatus status_of(const std::string& id, std::int64_t quota) const {
    runtime::v1::ContainerStatus status = answer_.status();
    status.set_id(id);
    status.mutable_resources()->mutable_linux()->set_cpu_quota(quota);
    return status;
  }
  Answer seen_in(const std::string& method) const {
    const std::string path = "/runtime.v1.RuntimeService/" + method;
    const std::string bytes = told_.SerializeAsString();
    Answer shown;
    shown.ParseFromString(rewrite({path, {bytes}}).value_or(bytes));
    return shown;
  }
  /// Only the quota of c-a is another.
  Answer expected() const {
    Answer expected = told_;
    expected.mutable_containers_statuses(1)->mutable_resources()->mutable_linux()->set_cpu_quota(200000);
    return expected;
  }

  Answer told_;
};

using ShownInPodStatus = ShownInStatuses<runtime::v1::PodSandboxStatusResponse>;
using ShownInEvent = ShownInStatuses<runtime::v1::ContainerEventResponse>;

TEST_F(ShownInPodStatus, AreThoseThatTheKubeletAskedFor) {
  told_.mutable_status()->set_id("sandbox-a");
  told_.set_timestamp(7);
  EXPECT_EQ(seen_in("PodSandboxStatus").DebugString(), expected().DebugString());
}

TEST_F(ShownInEvent, AreThoseThatTheKubeletAskedFor) {
  told_.set_container_id("c-a");
  told_.set_created_at(7);
  told_.mutable_pod_sandbox_status()->set_id("sandbox-a");
  EXPECT_EQ(seen_in("GetContainerEvents").DebugString(), expected().DebugString());
  told_.mutable_containers_statuses()->DeleteSubrange(1, 1);
  EXPECT_EQ(seen_in("GetContainerEvents").DebugString(), told_.DebugString()) << "none of these has another";
}

TEST_F(ShownQuotasTest, StayAsTheyCameWhereTheAnswerCannotBeRead) {
  const std::string bytes = answer_.SerializeAsString();
  const std::string cut = bytes.substr(0, bytes.size() - 1);
  EXPECT_EQ(rewrite({"/runtime.v1.RuntimeService/ContainerStatus", {cut}}), std::nullopt);
}

TEST_F(ShownQuotasTest, FollowResizesAndEnd) {
  const auto happen = [this](const Event& event) {
    const Transition made = compute_transition(ledger_, rule(true), kNow, event);
    ledger_.apply(made);
    shown_.on_durable(made);
  };
  placement::Demand more = guaranteed("a", 2).demand;
  more.cpu_limit_milli = 3000;
  happen(event::DemandChanged{guaranteed("a", 2).key, more, "resized"});
  EXPECT_EQ(quota_seen(), 300000);
  happen(event::Ended{guaranteed("a", 2).key, "removed"});
  EXPECT_EQ(quota_seen(), -1);
}

}  // namespace
}  // namespace topolet::engine
