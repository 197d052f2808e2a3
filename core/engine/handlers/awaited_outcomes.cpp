#include "core/engine/handlers/awaited_outcomes.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace topolet::engine {

struct AwaitedOutcomes::Awaited {
  std::atomic_flag is_over = ATOMIC_FLAG_INIT;
  operations::OnOutcome then;

  void end(const operations::Outcome& outcome) {
    if (is_over.test_and_set()) return;
    std::exchange(then, nullptr)(outcome);
  }
};

operations::OnOutcome AwaitedOutcomes::await(operations::OnOutcome then) {
  auto awaited = std::make_shared<Awaited>();
  awaited->then = std::move(then);
  entries_.push_back({clock_.steady() + patience_, awaited});
  return [awaited](const operations::Outcome& outcome) { awaited->end(outcome); };
}

void AwaitedOutcomes::expire() {
  const auto now = clock_.steady();
  while (!entries_.empty() && (entries_.front().awaited->is_over.test() || entries_.front().expires <= now)) {
    const Entry oldest = std::move(entries_.front());
    entries_.pop_front();
    oldest.awaited->end({.code = Code::kDeadlineExceeded,
                         .message = fmt::format("nobody has said what became of it for {} s",
                                                std::chrono::duration_cast<std::chrono::seconds>(patience_).count())});
  }
}

}  // namespace topolet::engine
