// Reads topolet's state database as anybody may: read-only, through the views that store/README.md documents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::integration {

/// One row of current_placements: what a container holds now.
struct PlacementRow {
  std::string pod;
  std::string container;
  std::string container_id;
  std::string state;
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;  ///< empty = left alone
  std::string reason;
};

/// One row of audit: a decision, what became of it, or its end.
struct AuditRow {
  std::string event;
  std::string what;
  std::string reason;
};

/// A policy's opinion of the candidate that won.
struct OpinionRow {
  std::string pod;
  std::string policy;
  std::string score;
  std::string reason;
};

class StateDb {
 public:
  explicit StateDb(std::filesystem::path file) : file_(std::move(file)) {}

  Result<std::vector<PlacementRow>> held() const;
  /// All that ever happened to the pods of that name, oldest first.
  Result<std::vector<AuditRow>> audit(const std::string& pod) const;
  /// The answer of sdk/example/said.sql.
  Result<std::vector<OpinionRow>> said() const;
  /// Why the last container of a pod was denied; empty if none was.
  Result<std::string> last_denial(const std::string& pod) const;

 private:
  std::filesystem::path file_;
};

}  // namespace topolet::integration
