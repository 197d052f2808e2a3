// Makes schedulers try pods again that were rejected for their zones and would fit now.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "cluster/extender/shared_book.hpp"
#include "core/base/log.hpp"

namespace topolet::extender {

/// On the loop's thread. A change of a Node is what schedulers look at, and they then try all pods that an extender has
/// rejected: so at most once a second, and less often where many wait.
class Waker {
 public:
  /// `wake_ups` is counted up, and must outlive it.
  Waker(api::Api& api, SharedBook& shared, std::atomic<std::uint64_t>& wake_ups, Log& log);
  ~Waker() { *is_alive_ = false; }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// This replica leads from now on. Whom the one before has rejected it does not know, so all are woken once.
  void begin();
  void end() { is_leading_ = false; }

 private:
  using Time = api::Api::Clock::time_point;

  void look();
  std::string node_to_change();
  void change_node(const std::string& node);

  api::Api& api_;
  SharedBook& shared_;
  api::TroubleLog trouble_;
  bool is_leading_ = false;
  bool is_first_ = false;  ///< nobody was woken in this term
  std::map<std::string, Growth> grown_;
  Time next_{};
  std::size_t failures_ = 0;
  std::atomic<std::uint64_t>& wake_ups_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::extender
