#include "core/load/counter_window.hpp"

#include <algorithm>

namespace topolet::load {
namespace {

constexpr std::chrono::seconds kWindow{5};
/// Readings are a little more or less than a second apart.
constexpr std::chrono::milliseconds kTolerance{200};

}  // namespace

void CounterWindow::drop_oldest() {
  std::move(readings_.begin() + 1, readings_.begin() + static_cast<std::ptrdiff_t>(size_), readings_.begin());
  --size_;
}

void CounterWindow::add(Time at, std::uint64_t value) {
  if (size_ > 0 && (value < newest().value || at <= newest().at)) restart();
  if (size_ == readings_.size()) drop_oldest();
  readings_[size_++] = {at, value};
  while (size_ > 2 && at - readings_[1].at >= kWindow - kTolerance) drop_oldest();
}

std::optional<double> CounterWindow::per_second() const {
  if (size_ < 2) return std::nullopt;
  const std::chrono::duration<double> time = newest().at - readings_[0].at;
  return static_cast<double>(newest().value - readings_[0].value) / time.count();
}

}  // namespace topolet::load
