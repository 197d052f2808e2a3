#include "tests/bench/burst_model.hpp"

#include <algorithm>

namespace topolet::bench {

BurstModel::Use BurstModel::at(std::chrono::seconds at) {
  while (ends_ <= at) {
    is_burst_ = !is_burst_;
    const std::uint64_t lasts = is_burst_ ? 20 + below(101) : 60 + below(541);
    if (is_burst_) {
      burst_milli_ = std::max<std::int64_t>(1000, request_milli_ * static_cast<std::int64_t>(20 + below(31)) / 10);
    }
    ends_ += std::chrono::seconds(static_cast<std::int64_t>(lasts));
  }
  return is_burst_ ? Use{burst_milli_, true} : Use{request_milli_ / 2, false};
}

}  // namespace topolet::bench
