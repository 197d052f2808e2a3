// What the kernel says of a process, read from /proc.
#pragma once

#include <sys/types.h>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::integration {

struct Allowed {
  CpuSet cpus;
  NodeSet mems;

  friend bool operator==(const Allowed&, const Allowed&) = default;
};

/// `Cpus_allowed_list` and `Mems_allowed_list` of a process. NOT_FOUND when there is no such process.
Result<Allowed> allowed_of(pid_t pid);

/// The same out of the text of a /proc/PID/status.
Result<Allowed> parse_allowed(const std::string& status);

}  // namespace topolet::integration
