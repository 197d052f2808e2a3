// Random choices that are the same for the same seed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace topolet::testing {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  /// 0…count−1
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool permille(std::size_t chance) { return below(1000) < chance; }
  /// 0…longest
  std::chrono::milliseconds up_to(std::chrono::milliseconds longest) {
    return std::chrono::milliseconds(below(static_cast<std::size_t>(longest.count()) + 1));
  }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace topolet::testing
