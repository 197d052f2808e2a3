// Warnings about settings of topoletd and the agent that contradict each other: pods are placed, but not as schedulers
// expect.
#pragma once

#include <array>
#include <map>
#include <string>

#include "core/base/illness.hpp"
#include "core/base/log.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// All warnings, for metrics; the words are the codes of illnesses as well.
inline constexpr std::array kSetupWarnings = {illness::kKubeletStatic, illness::kNodeName, illness::kZoneAnnotation};

/// Returns the warnings by those words, each with one sentence that says what to do.
std::map<std::string, std::string> setup_warnings(const std::string& node_name, const watch::v1::FitsResponse& fits);

/// Says each in the log when it comes, and when it is over.
class SetupWarnings {
 public:
  SetupWarnings(std::string node_name, Log& log) : node_name_(std::move(node_name)), log_(log) {}
  SetupWarnings(const SetupWarnings&) = delete;
  SetupWarnings& operator=(const SetupWarnings&) = delete;

  void look_at(const watch::v1::FitsResponse& fits);
  const std::map<std::string, std::string>& now() const { return now_; }

 private:
  const std::string node_name_;
  Log& log_;
  std::map<std::string, std::string> now_;
};

}  // namespace topolet::agent
