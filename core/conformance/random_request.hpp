// Requests that a policy may meet: the usual ones and seeded random ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/conformance/machines.hpp"
#include "core/placement/policy.hpp"

namespace topolet {

/// The same numbers for the same seed everywhere, which std's distributions do not promise.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// A machine with the candidates on it, made once.
struct Ground {
  Machine machine;
  std::vector<Candidate> candidates;
};

std::vector<Ground> make_grounds();

/// Nothing odd: containers of their own CPUs and of the pool, on an idle machine and on one that is half full.
std::vector<PolicyRequest> usual_requests(const Ground& ground);

/// Any ledger, any workload: strings that are empty, 64 KiB long or no UTF-8, many devices, bounds of the kubelet.
PolicyRequest random_request(const Ground& ground, Dice& dice);

}  // namespace topolet
