#include "core/load/stolen_share.hpp"

#include <algorithm>
#include <cmath>

namespace topolet::load {
namespace {

constexpr std::chrono::duration<double> kAveragedOver{60};
constexpr std::chrono::duration<double> kDecaysOver{600};
/// Of the time: a CPU that wants to run for less tells nothing about what it could have.
constexpr double kHardlyWants = 0.05;

}  // namespace

void StolenShare::add(std::chrono::duration<double> interval, std::chrono::duration<double> busy,
                      std::chrono::duration<double> steal) {
  const auto wanted = busy + steal;
  if (wanted < kHardlyWants * interval) {
    sum_ *= std::exp(-(interval / kDecaysOver));
    return;
  }
  const double newest = 1 - std::exp(-(interval / kAveragedOver));
  sum_ += newest * (steal / wanted - sum_);
  weight_ += newest * (1 - weight_);
}

std::int64_t StolenShare::effective_milli() const { return std::llround(std::clamp(1 - value(), 0.0, 1.0) * 1000); }

}  // namespace topolet::load
