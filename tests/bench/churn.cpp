#include "tests/bench/churn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <sstream>

namespace topolet::bench {
namespace {

/// Draws without the distributions of the standard library, which differ from one library to another.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::int64_t size(const std::vector<PodSize>& sizes) {
    std::uint64_t all = 0;
    for (const PodSize& size : sizes) all += size.weight;
    std::uint64_t left = below(all);
    for (const PodSize& size : sizes) {
      if (left < size.weight) return size.milli_cpus;
      left -= size.weight;
    }
    return 0;
  }

 private:
  std::mt19937_64 random_;
};

class ChurnMaker {
 public:
  explicit ChurnMaker(const ChurnOptions& options)
      : options_(options), limit_(std::int64_t{options.cpus} * options.fill_percent * 10), draw_(options.seed) {
    for (std::uint32_t gpu = 0; gpu < options.gpus; ++gpu) free_gpus_.insert(gpu);
  }

  Churn make() {
    while (churn_.size() < options_.pods) arrive();
    return std::move(churn_);
  }

 private:
  void arrive() {
    Arrival pod;
    const bool wants_gpu = options_.gpus > 0 && draw_.below(100) < options_.gpu_pods_percent;
    pod.milli_cpus = draw_.size(wants_gpu ? options_.gpu_sizes : options_.sizes);
    if (!options_.beside_sizes.empty()) pod.beside_milli_cpus = draw_.size(options_.beside_sizes);
    if (wants_gpu && free_gpus_.empty()) end_one(pod, true);
    while (used_ + pod.all_milli_cpus() > limit_ && !live_.empty()) {
      end_one(pod, false);
      was_full_ = true;
    }
    if (wants_gpu) pod.gpu = take_gpu();
    pod.is_counted = was_full_;
    used_ += pod.all_milli_cpus();
    live_.push_back(churn_.size());
    churn_.push_back(std::move(pod));
  }

  void end_one(Arrival& before, bool with_gpu) {
    std::vector<std::size_t> places;  // in live_
    for (std::size_t place = 0; place < live_.size(); ++place) {
      if (!with_gpu || churn_[live_[place]].gpu) places.push_back(place);
    }
    const std::size_t place = places[draw_.below(places.size())];
    const Arrival& ended = churn_[live_[place]];
    used_ -= ended.all_milli_cpus();
    if (ended.gpu) free_gpus_.insert(*ended.gpu);
    before.ended_before.push_back(live_[place]);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  std::uint32_t take_gpu() {
    const std::uint64_t place = options_.takes_lowest_gpu ? 0 : draw_.below(free_gpus_.size());
    const auto gpu = std::next(free_gpus_.begin(), static_cast<std::ptrdiff_t>(place));
    const std::uint32_t taken = *gpu;
    free_gpus_.erase(gpu);
    return taken;
  }

  const ChurnOptions& options_;
  const std::int64_t limit_;
  Draw draw_;
  std::int64_t used_ = 0;
  bool was_full_ = false;
  std::set<std::uint32_t> free_gpus_;
  std::vector<std::size_t> live_;
  Churn churn_;
};

/// One of "4", "0.5", "4:3"; weight 0 if it cannot be read.
PodSize parse_size(const std::string& text) {
  std::istringstream in(text);
  double cpus = 0;
  std::uint32_t weight = 1;
  char colon = ':';
  in >> cpus;
  if (!in.eof()) in >> colon >> weight;
  if (in.fail() || !in.eof() || colon != ':' || cpus < 0.001 || cpus > 10'000) return {0, 0};
  return {std::lround(cpus * 1000), weight};
}

}  // namespace

Result<std::vector<PodSize>> parse_sizes(const std::string& list) {
  std::vector<PodSize> sizes;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    const PodSize size = parse_size(part);
    if (size.weight == 0) {
      return Error{Code::kInvalidArgument,
                   fmt::format("'{}' is no size of a pod; an example is 4:3, 4 CPUs with weight "
                               "3",
                               part)};
    }
    sizes.push_back(size);
  }
  if (sizes.empty()) return Error{Code::kInvalidArgument, "there is no size of a pod"};
  return sizes;
}

Churn make_churn(const ChurnOptions& options) { return ChurnMaker(options).make(); }

}  // namespace topolet::bench
