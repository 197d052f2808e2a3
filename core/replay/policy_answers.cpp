#include "core/replay/policy_answers.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace topolet::replay {
namespace {

/// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Text and lists are followed by their length, so that no
/// two different answers are written alike.
class Digest {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<unsigned char>(number >> (8 * byte)));
  }
  void add(std::string_view text) {
    for (const char letter : text) add_byte(static_cast<unsigned char>(letter));
    add(text.size());
  }
  template <class Tag>
  void add(const IndexSet<Tag>& set) {
    for (const std::uint64_t word : set.words()) add(word);
    add(set.words().size());
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(std::uint64_t{value.has_value()});
    if (value) add(*value);
  }
  void add(const placement::Verdict& verdict) {
    add(static_cast<std::uint64_t>(verdict.kind));
    add(static_cast<std::uint64_t>(verdict.score));
    add(verdict.reason);
  }
  void add(const placement::CpuMinimum& minimum) {
    add(minimum.cpus);
    add(minimum.count);
  }
  void add(const std::pair<std::string, std::string>& entry) {
    add(entry.first);
    add(entry.second);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    for (const T& item : list) add(item);
    add(list.size());
  }
  void add(const placement::Pick& pick) {
    add(pick.narrow);
    add(pick.withhold);
    add(pick.at_least);
    for (const std::uint32_t cpu : pick.order) add(std::uint64_t{cpu});
    add(pick.order.size());
    add(pick.reason);
    add(pick.unmet);
    add(pick.rejected);
    for (const placement::Replacement& other : pick.replace) {
      add(other.key.pod_uid);
      add(other.key.name);
      add(std::uint64_t{other.move_nodes});
      add(other.reason);
    }
    add(std::uint64_t{pick.soft_home});
  }
  void add(const placement::Adjustment& adjustment) {
    add(adjustment.mems);
    add(adjustment.added.env);
    add(adjustment.added.annotations);
    add(adjustment.added.tags);
    add(adjustment.added.unified);
    add(adjustment.added.rdt_class);
    add_setting("memory_policy", adjustment.added.memory_policy);
    add_setting("scheduler", adjustment.added.scheduler);
    add_setting("io_priority", adjustment.added.io_priority);
    add(adjustment.used_devices);
    add(adjustment.reason);
  }

  std::uint64_t value() const { return hash_; }

 private:
  /// Nothing without a setting: records that were made before there were any have the same digest.
  template <class Setting>
  void add_setting(std::string_view name, const std::optional<Setting>& setting) {
    if (!setting) return;
    add(name);
    add(describe(*setting));
  }
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }

  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

/// Passes every call on, and notes how it ended. `lose`: calls that are lost without the policy being asked.
class NotingPolicy final : public placement::Policy {
 public:
  NotingPolicy(std::shared_ptr<placement::Policy> policy, const std::vector<LostCall>* lose)
      : policy_(std::move(policy)), lose_(lose) {}

  const std::string& name() const override { return policy_->name(); }
  std::chrono::microseconds time_spent() const override { return policy_->time_spent(); }

  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    return note<std::vector<placement::Verdict>>("score", [&] { return policy_->score(request); });
  }
  Result<std::vector<NodeSet>> propose(const placement::PolicyRequest& request) override {
    return note<std::vector<NodeSet>>("propose", [&] { return policy_->propose(request); });
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                               std::size_t count) override {
    return note<placement::Pick>("pick", [&] { return policy_->pick(request, candidate, usable, count); });
  }
  Result<placement::Pick> order_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                     const CpuSet& usable, std::size_t count) override {
    return note<placement::Pick>("order", [&] { return policy_->order_pick(request, candidate, usable, count); });
  }
  Result<placement::Pick> review_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                      const CpuSet& usable, const CpuSet& chosen) override {
    return note<placement::Pick>("review", [&] { return policy_->review_pick(request, candidate, usable, chosen); });
  }
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& chosen) override {
    return note<placement::Adjustment>("adjust", [&] { return policy_->adjust(request, chosen); });
  }

  PolicyAnswers answers() const { return {name(), digest_.value(), lost_}; }

 private:
  template <class T, class Ask>
  Result<T> note(const char* call, Ask ask) {
    const std::uint32_t number = ++calls_;
    const Error* again = lost_again(number);
    Result<T> answer = again != nullptr ? Result<T>(*again) : ask();
    if (answer) {
      digest_.add(std::string_view(call));
      digest_.add(*answer);
    } else {
      lost_.push_back({number, call, answer.error().code, answer.error().message});
    }
    return answer;
  }

  const Error* lost_again(std::uint32_t number) {
    if (lose_ == nullptr) return nullptr;
    const auto lost = std::find_if(lose_->begin(), lose_->end(),
                                   [number](const LostCall& lost_call) { return lost_call.number == number; });
    if (lost == lose_->end()) return nullptr;
    again_ = {lost->code, lost->why};
    return &again_;
  }

  const std::shared_ptr<placement::Policy> policy_;
  const std::vector<LostCall>* const lose_;
  Error again_;
  std::uint32_t calls_ = 0;
  Digest digest_;
  std::vector<LostCall> lost_;
};

NotedDecision decide_noting(const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                            const placement::Votes& votes, const std::vector<PolicyAnswers>* recorded) {
  std::vector<std::shared_ptr<NotingPolicy>> policies;
  std::vector<placement::Vote> noted = votes;
  for (placement::Vote& vote : noted) {
    const std::vector<LostCall>* lose = nullptr;
    if (recorded != nullptr) {
      const auto before = std::find_if(recorded->begin(), recorded->end(), [&vote](const PolicyAnswers& answers) {
        return answers.policy == vote.policy->name();
      });
      if (before != recorded->end()) lose = &before->lost;
    }
    policies.push_back(std::make_shared<NotingPolicy>(vote.policy, lose));
    vote.policy = policies.back();
  }
  NotedDecision made{decide(request, rules, noted), {}};
  for (const auto& policy : policies) made.answers.push_back(policy->answers());
  return made;
}

}  // namespace

NotedDecision decide(const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                     const placement::Votes& votes, Notes notes) {
  if (notes == Notes::kNone) return {placement::decide(request, rules, votes), {}};
  return decide_noting(request, rules, votes, nullptr);
}

NotedDecision decide_again(const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                           const placement::Votes& votes, const std::vector<PolicyAnswers>& recorded) {
  return decide_noting(request, rules, votes, &recorded);
}

}  // namespace topolet::replay
