// What plugins hear of what transitions do.
#include "core/engine/plugin_events.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string text_of(const plugin::ContainerEvent& told) {
  constexpr std::array<const char*, 9> kKinds = {"placed", "started",     "moved",  "resized", "released",
                                                 "exited", "pod removed", "denied", "unpinned"};
  std::string text = fmt::format("{} {} {}", told.sequence, kKinds.at(static_cast<std::size_t>(told.kind)),
                                 told.workload.key.name.empty() ? told.workload.pod_name : told.workload.key.name);
  if (!told.placement.cpus.empty()) text += " on " + told.placement.cpus.to_string();
  if (!told.container_id.empty()) text += " as " + told.container_id;
  if (told.exit_code) text += fmt::format(" with {}", *told.exit_code);
  if (told.adopted) text += ", adopted";
  if (!told.reason.empty()) text += ": " + told.reason;
  return text;
}

class PluginEventsTest : public ConvergeTest {
 protected:
  void begin(const std::vector<Allocation>& allocations, const std::vector<Pod>& pods = {}) {
    ConvergeTest::begin(allocations, pods);
    events_ = std::make_unique<PluginEvents>(
        *committer_,
        PluginEvents::Deps{loop_, placer_, [this] { return is_heard_; }, [this](const auto& told) { hear(*told); }});
  }
  void hear(const plugin::ContainerEvent& told) {
    last_ = told;
    heard_.push_back(text_of(told));
  }
  std::vector<std::string> take_heard() {
    loop_.run();
    return std::exchange(heard_, {});
  }
  std::vector<std::string> heard_of(const Event& event) {
    commit(event);
    return take_heard();
  }
  placement::ContainerKey key(const std::string& name) const { return besteffort(name).key; }

  std::unique_ptr<PluginEvents> events_;
  bool is_heard_ = true;
  std::optional<plugin::ContainerEvent> last_;

 private:
  std::vector<std::string> heard_;
};

TEST_F(PluginEventsTest, TellOfAnExitWithItsCodeBeforeTheRelease) {
  begin({shared("a"), exclusive("b", {1}), exclusive("c", {2})});
  EXPECT_THAT(heard_of(event::Exited{key("a"), 3}),
              ElementsAre("1 exited a on 0,3-7 as c-a with 3", "2 released a on 0,3-7 as c-a"));
  EXPECT_THAT(heard_of(event::Exited{key("b"), 1}),
              ElementsAre("3 exited b on 1 as c-b with 1", "4 released b on 1 as c-b"))
      << "its CPUs are kept";
  EXPECT_THAT(heard_of(event::Exited{key("c"), {}, "stopped"}),
              ElementsAre("5 exited c on 2 as c-c", "6 released c on 2 as c-c"))
      << "nobody has said with which code";
}

TEST_F(PluginEventsTest, TellOfNoExitOfWhatNeverRan) {
  begin({shared("a", Phase::kCreated), shared("b", Phase::kPending)});
  EXPECT_THAT(heard_of(event::Exited{key("a"), {}, "removed"}), ElementsAre("1 released a on 0-7 as c-a"));
  EXPECT_THAT(heard_of(event::CreateRefused{key("b"), {}}), IsEmpty());
}

TEST_F(PluginEventsTest, TellThatThePodIsGoneAfterItsContainers) {
  begin({in_pod_of("web", shared("a"))}, {pod_of("web")});
  commit(event::PodStopped{"sandbox-web"});
  EXPECT_THAT(take_heard(), ElementsAre("1 exited a on 0-7 as c-a", "2 released a on 0-7 as c-a"));
  EXPECT_THAT(heard_of(event::PodRemoved{"sandbox-web"}), ElementsAre("3 pod removed web"));
  EXPECT_EQ(last_->workload.key.pod_uid, "uid-web");
  EXPECT_EQ(last_->workload.key.sandbox_id, "sandbox-web");
  EXPECT_EQ(last_->workload.pod_namespace, "default");
  EXPECT_THAT(heard_of(event::PodRemoved{"sandbox-web"}), IsEmpty()) << "it is gone already";
}

TEST_F(PluginEventsTest, TellThatAPodIsGoneThatTheRuntimeHasNoMore) {
  begin({}, {pod_of("web")});
  EXPECT_THAT(heard_of(event::PodForgotten{"sandbox-web"}), ElementsAre("1 pod removed web"));
}

TEST_F(PluginEventsTest, TellOfEachDenialAlsoOfTheSame) {
  begin({});
  event::Denied denied{guaranteed("big", 9), {}};
  denied.decision.denied = true;
  denied.decision.reason = "too big";
  denied.workload.env = {{"SECRET", "1"}};
  EXPECT_THAT(heard_of(denied), ElementsAre("1 denied big: too big"));
  EXPECT_THAT(heard_of(denied), ElementsAre("2 denied big: too big"));
  EXPECT_THAT(last_->workload.env, IsEmpty());
}

TEST_F(PluginEventsTest, TellOfContainersWithoutAPlacement) {
  begin({exclusive("a", {1})});
  EXPECT_THAT(heard_of(event::FoundForeign{key("a"), "its handler is not placed"}), ElementsAre("1 unpinned a as c-a"));
  EXPECT_EQ(last_->placement.mode, placement::Mode::kForeign);
  operations::ContainerInfo made;
  made.id = "c-vm";
  made.state = operations::ContainerState::kCreated;
  event::Adopted noted{besteffort("vm"), {}, made, AuditEvent::kForeign, {}};
  noted.plan.decision.placement.mode = placement::Mode::kForeign;
  noted.plan.decision.placement.cpus = CpuSet{3};
  noted.is_created = true;
  EXPECT_THAT(heard_of(noted), ElementsAre("2 unpinned vm as c-vm"))
      << "the CPUs that the kubelet gave it are not ours";
  noted.workload.key.name = "found";
  noted.container.id = "c-found";
  noted.is_created = false;
  EXPECT_THAT(heard_of(noted), ElementsAre("3 unpinned found as c-found, adopted"));
}

TEST_F(PluginEventsTest, SayWhatIsAdopted) {
  begin({shared("a"), shared("b", Phase::kInDoubt)});
  events_->publish_known(committer_->ledger());
  EXPECT_THAT(take_heard(), ElementsAre("1 placed a on 0-7 as c-a, adopted"));
  operations::ContainerInfo found;
  found.id = "c-b";
  found.state = operations::ContainerState::kCreated;
  EXPECT_THAT(heard_of(event::CreateDiscovered{key("b"), found}), ElementsAre("2 placed b on 0-7 as c-b, adopted"));
}

TEST_F(PluginEventsTest, NumberThemFromOneWhoeverHears) {
  begin({shared("a", Phase::kCreated)});
  is_heard_ = false;
  EXPECT_THAT(heard_of(event::StartConfirmed{key("a")}), IsEmpty());
  is_heard_ = true;
  EXPECT_THAT(heard_of(event::Exited{key("a"), 0}),
              ElementsAre("2 exited a on 0-7 as c-a with 0", "3 released a on 0-7 as c-a"));
}

}  // namespace
}  // namespace topolet::engine
