// The latest events of a random run, to find out why it failed.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include "tests/support/virtual_time.hpp"

namespace topolet::testing {

class Trace {
 public:
  struct Options {
    std::size_t kept = 40;
    bool to_stderr = false;  ///< every line at once, too
  };
  Trace(const VirtualTime& time, Options options) : time_(time), options_(options) {}

  void add(const std::string& what) {
    std::string line = fmt::format("{:10.3f} {}", static_cast<double>(time_.now().count()) / 1000, what);
    if (options_.to_stderr) fmt::print(stderr, "{}\n", line);
    lines_.push_back(std::move(line));
    if (lines_.size() > options_.kept) lines_.pop_front();
  }

  std::string last_lines() const { return fmt::format("{}\n", fmt::join(lines_, "\n")); }

 private:
  const VirtualTime& time_;
  Options options_;
  std::deque<std::string> lines_;
};

}  // namespace topolet::testing
