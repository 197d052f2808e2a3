// The rights in the cluster that the extender needs, and those that it can do without.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "cluster/api/access_review.hpp"
#include "cluster/api/leader_election.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"

namespace topolet::extender {

/// Begins on the loop's thread; any thread may ask. Nothing: the API server has not told yet.
class Rights {
 public:
  Rights(api::Api& api, const std::optional<api::LeaderElection::Options>& lease, Log& log);
  Rights(const Rights&) = delete;
  Rights& operator=(const Rights&) = delete;

  struct Missing {
    /// The missing rights without which no pod is bound, in words.
    std::optional<std::string> needed;
    std::optional<std::size_t> needed_count;
    /// The number of missing rights without which it does less.
    std::optional<std::size_t> useful_count;
  };
  Missing missing() const TOPOLET_EXCLUDES(mutex_);

 private:
  void take_needed();
  void take_useful();

  Log& log_;
  mutable Mutex mutex_;
  Missing missing_ TOPOLET_GUARDED_BY(mutex_);
  api::AccessReview needed_;
  api::AccessReview useful_;
};

}  // namespace topolet::extender
