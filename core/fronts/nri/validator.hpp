// Judges, before a container is created, what NRI plugins set of its CPUs and memory nodes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/fronts/nri/session.hpp"
#include "core/operations/foreign_cpuset.hpp"

namespace topolet::nri {

/// Returns what the payload of ValidateContainerAdjustment says of cpusets, if another plugin than `own` sets any.
/// INVALID_ARGUMENT if it cannot be read.
Result<std::optional<operations::ForeignCpuset>> read_foreign_cpuset(const std::string& payload,
                                                                     const std::string& own);

/// Answers ValidateContainerAdjustment, on the thread of its session.
class Validator {
 public:
  /// The runtime waits for the verdict, and does nothing else meanwhile.
  using Judge = std::function<void(operations::ForeignCpuset found, operations::OnForeignCpusetJudged verdict)>;

  /// `when_late`: the verdict where the judge has none when half of the runtime's patience is over. The runtime would
  /// refuse the create at the end of it, and end the connection.
  Validator(Judge judge, std::optional<std::string> when_late, Log& log)
      : judge_(std::move(judge)), when_late_(std::move(when_late)), log_(log) {}

  void validate(Session& session, const std::string& payload, const Answer& answer) const;

 private:
  const Judge judge_;
  const std::optional<std::string> when_late_;
  Log& log_;
};

/// The answer that refuses a create.
std::string make_refusal(const std::string& reason);

}  // namespace topolet::nri
