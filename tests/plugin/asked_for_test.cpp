// What plugins are asked in one decision: which of them, at which stage of the pick, and for whom they adjust.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <topolet/policy.hpp>
#include <vector>

#include "core/base/log.hpp"
#include "core/placement/decide.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

sdk::Set cpus(std::initializer_list<std::uint32_t> os_indices) {
  sdk::Set set;
  for (const std::uint32_t cpu : os_indices) set.insert(cpu);
  return set;
}

/// Notes what it is asked besides scores, in a list that it shares with others.
class Asked {
 public:
  using Pick = std::function<void(const topolet_pick_request& request, const topolet_pick_sink& sink)>;

  Asked(const std::string& name, std::vector<std::string>& notes, Pick pick = {})
      : name_(name), notes_(notes), answer_(std::move(pick)) {
    instance_ = {sizeof(instance_), 0, this,
                 [](const topolet_instance* instance, topolet_str id) -> const void* {
                   const Asked& own = self(instance);
                   if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &own.score_;
                   if (topolet_str_is(id, TOPOLET_PICK_ID)) return &own.pick_;
                   return topolet_str_is(id, TOPOLET_ADJUST_ID) ? &own.adjust_ : nullptr;
                 },
                 [](const topolet_instance*) {}};
    policy_ =
        PluginPolicy::wrap(name, std::make_unique<PluginHost>(name, make_silent_log(), nullptr), &instance_).value();
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  PluginVote vote() const { return {name_, policy_}; }
  int scores() const { return scores_; }

 private:
  static Asked& self(const topolet_instance* instance) { return *static_cast<Asked*>(instance->context); }

  std::int32_t note_pick(const topolet_pick_request& request, const topolet_pick_sink& sink) {
    const char* const stage = request.stage == TOPOLET_PICK_CHOOSE   ? "choose"
                              : request.stage == TOPOLET_PICK_ORDER  ? "order"
                              : request.stage == TOPOLET_PICK_REVIEW ? "review"
                                                                     : "unknown";
    notes_.push_back(fmt::format(
        "{} {} {} of {}{}", name_, stage, request.count, sdk::Set(request.usable).to_string(),
        sdk::size_of(request.chosen) == 0 ? std::string() : ", chosen " + sdk::Set(request.chosen).to_string()));
    if (answer_) answer_(request, sink);
    return TOPOLET_OK;
  }

  const std::string name_;
  std::vector<std::string>& notes_;
  const Pick answer_;
  int scores_ = 0;
  topolet_score score_{sizeof(topolet_score), 0, [](auto* instance, auto*, auto*) -> std::int32_t {
                         ++self(instance).scores_;
                         return TOPOLET_OK;
                       }};
  topolet_pick pick_{sizeof(topolet_pick), 0, [](auto* instance, auto* request, auto* sink) {
                       return self(instance).note_pick(*request, *sink);
                     }};
  topolet_adjust adjust_{
      sizeof(topolet_adjust), 0, [](auto* instance, auto* request, auto*) -> std::int32_t {
        self(instance).notes_.push_back(fmt::format("{} adjust {}", self(instance).name_, request->asks));
        return TOPOLET_OK;
      }};
  topolet_instance instance_{};
  std::shared_ptr<PluginPolicy> policy_;
};

class AskedForTest : public ::testing::Test {
 protected:
  placement::Decision decide(const std::vector<PluginVote>& votes) {
    const std::shared_ptr<const placement::PolicyRequest> asked = request_;
    return thread_.run_as<placement::Decision>(votes, [asked](const std::vector<placement::Vote>& policies) {
      return placement::decide(*asked, {}, policies);
    });
  }
  /// Only the adjusting.
  std::vector<std::string> adjusted_on(placement::Occasion occasion) {
    const Asked plugin("p", notes_);
    notes_.clear();
    request_->occasion = occasion;
    decide({plugin.vote()});
    std::erase_if(notes_, [](const std::string& note) { return note.find("adjust") == std::string::npos; });
    return notes_;
  }

  std::shared_ptr<placement::PolicyRequest> request_ = two_node_request();
  std::vector<std::string> notes_;
  PolicyThread thread_{{.deadline = std::chrono::minutes(1), .decision_time = std::chrono::minutes(1), .clock = {}}};
};

TEST_F(AskedForTest, ChoosesThenOrdersThenReviews) {
  const Asked plugin("p", notes_);
  decide({plugin.vote()});
  EXPECT_THAT(notes_,
              ElementsAre("p choose 2 of 0-7", "p order 2 of 0-7", "p review 2 of 0-7, chosen 0-1", "p adjust 0"));
}

TEST_F(AskedForTest, OrdersWhatIsLeftUntilOneHasAnOrder) {
  const Asked narrows("a", notes_, [](const topolet_pick_request& request, const topolet_pick_sink& sink) {
    const sdk::Set upper = cpus({4, 5, 6});
    if (request.stage == TOPOLET_PICK_CHOOSE) sink.narrow(&sink, upper.view());
  });
  const Asked orders("b", notes_, [](const topolet_pick_request& request, const topolet_pick_sink& sink) {
    const std::uint32_t last_first[] = {6, 5};
    if (request.stage == TOPOLET_PICK_ORDER) sink.order(&sink, last_first, 2);
  });
  const Asked late("c", notes_);
  const placement::Decision decision = decide({narrows.vote(), orders.vote(), late.vote()});
  EXPECT_EQ(decision.placement.cpus.to_string(), "5-6");
  EXPECT_THAT(notes_, ElementsAre("a choose 2 of 0-7", "b choose 2 of 0-7", "c choose 2 of 0-7", "a order 2 of 4-6",
                                  "b order 2 of 4-6", "a review 2 of 0-7, chosen 5-6", "b review 2 of 0-7, chosen 5-6",
                                  "c review 2 of 0-7, chosen 5-6", "a adjust 0", "b adjust 0", "c adjust 0"));
}

TEST_F(AskedForTest, OrdersEachPartOfWhatIsDivided) {
  const Asked divides("a", notes_, [](const topolet_pick_request& request, const topolet_pick_sink& sink) {
    const sdk::Set upper = cpus({4, 5, 6, 7});
    if (request.stage == TOPOLET_PICK_CHOOSE) sink.at_least(&sink, upper.view(), 1);
    const std::uint32_t odd_first[] = {7, 3};
    if (request.stage == TOPOLET_PICK_ORDER) sink.order(&sink, odd_first, 2);
  });
  const placement::Decision decision = decide({divides.vote()});
  EXPECT_EQ(decision.placement.cpus.to_string(), "3,7");
  EXPECT_THAT(notes_, ElementsAre("a choose 2 of 0-7", "a order 2 of 0-7", "a order 1 of 4-7", "a order 1 of 0-6",
                                  "a review 2 of 0-7, chosen 3,7", "a adjust 0"));
}

/// What belongs to another stage is as good as not said.
TEST_F(AskedForTest, HeedsInEachStageOnlyWhatBelongsToIt) {
  const Asked plugin("p", notes_, [](const topolet_pick_request& request, const topolet_pick_sink& sink) {
    const sdk::Set upper = cpus({4, 5, 6, 7});
    const std::uint32_t upper_first[] = {7, 6};
    if (request.stage != TOPOLET_PICK_CHOOSE) {
      sink.narrow(&sink, upper.view());
      sink.at_least(&sink, upper.view(), 2);
    }
    if (request.stage != TOPOLET_PICK_ORDER) sink.order(&sink, upper_first, 2);
    if (request.stage == TOPOLET_PICK_REVIEW) return;
    sink.withhold(&sink, upper.view());
    sink.unmet(&sink, TOPOLET_STR("this"));
    sink.reject(&sink, TOPOLET_STR("that"));
  });
  const placement::Decision decision = decide({plugin.vote()});
  EXPECT_EQ(decision.placement.cpus.to_string(), "0-1");
  EXPECT_TRUE(decision.placement.withheld.empty());
  EXPECT_THAT(decision.verdicts.dropped, IsEmpty());
  EXPECT_THAT(decision.lost_votes, IsEmpty());
}

TEST_F(AskedForTest, OrdersNoCpusThatAreShared) {
  request_->share(placement::NotExclusive::kBurstable);
  const Asked plugin("p", notes_);
  decide({plugin.vote()});
  EXPECT_THAT(notes_, ElementsAre("p choose 0 of 0-7", "p review 0 of 0-7, chosen 0-7", "p adjust 0"));
}

TEST_F(AskedForTest, SaysForWhomItAdjusts) {
  using placement::Occasion;
  for (const Occasion created : {Occasion::kCreate, Occasion::kRestart})
    EXPECT_THAT(adjusted_on(created), ElementsAre("p adjust 0"));
  for (const Occasion exists : {Occasion::kResize, Occasion::kMove, Occasion::kRepair, Occasion::kAdopt})
    EXPECT_THAT(adjusted_on(exists), ElementsAre("p adjust 1"));
}

TEST_F(AskedForTest, AsksNobodyAboutNoCandidate) {
  const Asked plugin("p", notes_);
  request_->candidates.clear();
  EXPECT_TRUE(decide({plugin.vote()}).denied);
  EXPECT_EQ(plugin.scores(), 0);
}

}  // namespace
}  // namespace topolet::plugin
