// A store that remembers the decisions of one operation, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "store/store.hpp"

namespace topolet::simulate {

class RecordingStore final : public Store {
 public:
  /// Since forget().
  const std::vector<DecidedRow>& decisions() const { return decisions_; }
  void forget() { decisions_.clear(); }

  const OpenReport& report() const override { return report_; }
  Status begin() override { return {}; }
  Status commit() override { return {}; }
  void roll_back() override {}
  Result<std::int64_t> add(const DecidedRow& row) override {
    decisions_.push_back(row);
    return ++last_number_;
  }
  Status add(const OutcomeRow&) override { return {}; }
  Status add(const EndedRow&) override { return {}; }
  Status set_live_cpus(std::int64_t, const CpuSet&) override { return {}; }
  Status count_repeat(std::int64_t, std::int64_t) override { return {}; }
  Status add_pool(std::uint64_t, std::int64_t, const CpuSet&) override { return {}; }
  Status put_pod(const PodRow&) override { return {}; }
  Status remove_pod(const std::string&) override { return {}; }
  Result<std::vector<LiveRow>> live() override { return std::vector<LiveRow>(); }
  Result<std::vector<PodRow>> pods() override { return std::vector<PodRow>(); }
  Result<std::uint64_t> last_generation() override { return std::uint64_t{0}; }

 private:
  OpenReport report_;
  std::int64_t last_number_ = 0;
  std::vector<DecidedRow> decisions_;
};

}  // namespace topolet::simulate
