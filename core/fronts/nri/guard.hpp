// Hears from the runtime, before each container is created, which NRI plugins set its CPUs and memory nodes, so that it
// can be told and refused that another one than topolet decides.
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

/// A validating plugin: it adjusts nothing. Runtimes of NRI before 0.10 never ask it.
class Guard {
 public:
  /// On a thread of the guard. The runtime waits for the verdict, and does nothing else meanwhile.
  using Judge = std::function<void(operations::ForeignCpuset found, operations::OnForeignCpusetJudged verdict)>;

  /// `socket`: the runtime's NRI socket. `when_late`: the verdict where the judge has none when half of the runtime's
  /// patience is over. The runtime would refuse the create at the end of it, and end the connection.
  Guard(std::filesystem::path socket, Judge judge, std::optional<std::string> when_late, Log& log);

  SessionState state() const { return session_.state(); }

 private:
  std::chrono::milliseconds patience() const;
  void on_call(const std::string& method, const std::string& payload, const Answer& answer);

  const Judge judge_;
  const std::optional<std::string> when_late_;
  Log& log_;
  Session session_;
};

}  // namespace topolet::nri
