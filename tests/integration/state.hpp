// Reads topolet's state database as anybody may: read-only, through the views that store/README.md documents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::integration {

/// One row of current_placement.
struct Held {
  std::string pod_uid;
  std::string container;
  std::string container_id;
  std::string state;
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;  ///< empty = left alone
  std::string reason;
};

/// One row of audit.
struct Audited {
  std::string event;
  std::string container;
  std::string outcome;
  std::string cause;
  std::string reason;
};

class StateDb {
 public:
  explicit StateDb(std::filesystem::path file) : file_(std::move(file)) {}

  Result<std::vector<Held>> held() const;
  /// All that was ever decided on a pod, oldest first.
  Result<std::vector<Audited>> audit(const std::string& pod_uid) const;

 private:
  std::filesystem::path file_;
};

}  // namespace topolet::integration
