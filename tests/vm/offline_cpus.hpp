// CPUs of the machine that go offline, by its kernel.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/index_set.hpp"

namespace topolet::integration {

/// The first line of a file; empty where there is none.
inline std::string line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// Offline while this lives.
class OfflineCpus {
 public:
  explicit OfflineCpus(CpuSet cpus) : cpus_(std::move(cpus)) { set('0'); }
  ~OfflineCpus() { set('1'); }
  OfflineCpus(const OfflineCpus&) = delete;
  OfflineCpus& operator=(const OfflineCpus&) = delete;

  bool are_offline() const {
    const auto online = CpuSet::parse(line_of("/sys/devices/system/cpu/online"));
    return online.has_value() && !online->intersects(cpus_);
  }

 private:
  void set(char online) const {
    for (const std::uint32_t cpu : cpus_) {
      std::ofstream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online") << online;
    }
  }

  const CpuSet cpus_;
};

}  // namespace topolet::integration
