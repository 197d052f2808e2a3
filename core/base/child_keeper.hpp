// The process between run_in_child() and its child: every descendant of the child is a descendant of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "core/base/child_report.hpp"
#include "core/base/run_in_child.hpp"

namespace topolet {

struct KeptChild {
  ChildReport& report;
  pid_t parent;  ///< of the keeper: when it has gone, the child goes
  std::chrono::milliseconds time_limit;
  const std::function<std::string(const Progress&)>& work;
};

/// In a process that was forked for it: forks the child, watches it, kills it with all that it started, and ends.
[[noreturn]] void keep_child(const KeptChild& kept);

}  // namespace topolet
