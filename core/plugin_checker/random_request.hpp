// Requests that a policy may meet: the usual ones and seeded random ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin_checker/machines.hpp"

namespace topolet::plugin_checker {

/// The same numbers for the same seed everywhere, which std's distributions do not promise.
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : engine_(seed) {}

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
struct Testbed {
  Machine machine;
  std::vector<placement::Candidate> candidates;
};

std::vector<Testbed> make_testbeds();

/// Nothing odd: containers of their own CPUs and of the pool, on an idle machine and on one that is half full.
std::vector<placement::PolicyRequest> usual_requests(const Testbed& testbed);

/// Any ledger, any workload: strings that are empty, 64 KiB long or no UTF-8, many devices, bounds of the kubelet.
placement::PolicyRequest random_request(const Testbed& testbed, RandomSource& rng);

}  // namespace topolet::plugin_checker
