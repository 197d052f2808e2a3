// Says in the log that something does not work: once, not each time that it is tried.
#pragma once

#include <string>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::api {

class TroubleLog {
 public:
  /// `subject`: what is being tried, as the beginning of a sentence: "the pods of node n1 cannot be followed".
  TroubleLog(std::string subject, Log& log) : subject_(std::move(subject)), log_(log) {}

  void failed(const std::string& why) {
    if (std::exchange(told_, why) != why) log_.warn("{}: {}; it is tried again", subject_, why);
  }
  void works() {
    if (!std::exchange(told_, {}).empty()) log_.info("this is over: {}", subject_);
  }
  /// Why it failed; empty: it did not, the last time.
  const std::string& now() const { return told_; }

 private:
  const std::string subject_;
  Log& log_;
  std::string told_;
};

}  // namespace topolet::api
