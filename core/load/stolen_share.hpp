// The share of one CPU's time that a hypervisor takes.
#pragma once

#include <chrono>
#include <cstdint>

namespace topolet::load {

/// An average over the last minute of steal / (steal + busy). Steal shows only while the CPU wants to run: while it
/// hardly does, the last value stays, and decays over ten minutes; else an idle machine under a busy host would look
/// perfect. Starts with the first interval in which the CPU wants to run.
class StolenShare {
 public:
  /// Adds what the CPU did in `interval`, each in the same unit as the other and the interval.
  void add(std::chrono::duration<double> interval, std::chrono::duration<double> busy,
           std::chrono::duration<double> steal);

  /// 0 to 1. 0 as long as the CPU has never wanted to run.
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  std::int64_t effective_milli() const;

 private:
  double sum_ = 0;
  double weight_ = 0;  ///< of what was seen so far: 1 after some minutes
};

}  // namespace topolet::load
