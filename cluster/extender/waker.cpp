#include "cluster/extender/waker.hpp"

#include <algorithm>
#include <utility>

#include "cluster/api/grown_annotation.hpp"

namespace topolet::extender {
namespace {

constexpr std::chrono::milliseconds kPeriod{1000};
/// So many calls of schedulers come from a wake-up, which must not be all that they do.
constexpr std::chrono::milliseconds kPerPod{10};
constexpr std::chrono::milliseconds kLongestPeriod{10'000};
constexpr std::chrono::milliseconds kAfterFailure{5000};

}  // namespace

Waker::Waker(api::Api& api, SharedBook& shared, std::atomic<std::uint64_t>& wake_ups, Log& log)
    : api_(api),
      shared_(shared),
      trouble_("schedulers cannot be told that there is room again", log),
      wake_ups_(wake_ups) {
  look();
}

void Waker::begin() {
  is_leading_ = is_first_ = true;
  grown_.clear();
  MutexLock lock(shared_.mutex);
  shared_.waiting.clear();
}

void Waker::look() {
  api_.after(kPeriod, [this, alive = is_alive_] {
    if (*alive) look();
  });
  if (const std::string node = node_to_change(); !node.empty()) change_node(node);
}

/// Returns the node whose change wakes schedulers; empty if none is to be woken.
std::string Waker::node_to_change() {
  MutexLock lock(shared_.mutex);
  for (const auto& [node, growth] : shared_.book.take_grown()) grown_[node] = std::max(grown_[node], growth);
  if (!is_leading_) grown_.clear();
  if (!is_leading_ || !shared_.is_synced || api_.now() < next_) return {};
  std::string node;
  if (is_first_) {
    const std::vector<std::string> names = shared_.book.node_names();
    if (!names.empty()) node = names[failures_ % names.size()];
  } else {
    node = shared_.waiting.find_fit(shared_.book, grown_, api_.now()).value_or("");
  }
  if (node.empty()) return {};
  const auto many = kPerPod * static_cast<std::int64_t>(shared_.waiting.size());
  next_ = api_.now() + std::clamp<std::chrono::milliseconds>(many, kPeriod, kLongestPeriod);
  // They are all tried again, with whatever has grown until now.
  shared_.waiting.note_woken();
  grown_.clear();
  return node;
}

void Waker::change_node(const std::string& node) {
  api_.request(api::grown_request(node, api_.wall_time()),
               [this, alive = is_alive_, node](const api::ApiAnswer& answer) {
                 if (!*alive) return;
                 if (answer.ok()) {
                   is_first_ = false;
                   ++wake_ups_;
                   return trouble_.works();
                 }
                 trouble_.failed(answer.error);
                 // Any Node serves; this one may be gone.
                 is_first_ = true;
                 ++failures_;
                 next_ = api_.now() + kAfterFailure;
               });
}

}  // namespace topolet::extender
