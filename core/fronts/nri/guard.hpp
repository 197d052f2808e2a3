// Hears from the runtime, before each container is created, which NRI plugins set its CPUs and memory nodes, so that it
// can be told and refused that another one than topolet decides.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/fronts/nri/session.hpp"

namespace topolet::nri {

/// What other plugins set of the cpuset of a container that is about to be created.
struct ForeignCpuset {
  std::string container_id;  ///< the runtime knows it before the create is answered
  std::string sandbox_id;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string container;                   ///< its name
  std::optional<std::string> cpus_plugin;  ///< who sets its CPUs, such as "10-koordlet"; none: nobody
  std::string cpus;                        ///< as a CPU list, as the plugin has it
  std::optional<std::string> mems_plugin;  ///< who sets its memory nodes
  std::string mems;

  friend bool operator==(const ForeignCpuset&, const ForeignCpuset&) = default;
};

/// Returns what the payload of ValidateContainerAdjustment says of cpusets, if another plugin than `own` sets any.
/// INVALID_ARGUMENT if it cannot be read.
Result<std::optional<ForeignCpuset>> read_foreign_cpuset(const std::string& payload, const std::string& own);

/// A validating plugin: it adjusts nothing. Runtimes of NRI before 0.10 never ask it.
class Guard {
 public:
  /// Takes the reason to refuse the create, or nothing to let it pass. Once; any thread.
  using Verdict = std::function<void(std::optional<std::string> refusal)>;
  /// On a thread of the guard. The runtime waits for the verdict, and does nothing else meanwhile.
  using Judge = std::function<void(ForeignCpuset found, Verdict verdict)>;

  /// `socket`: the runtime's NRI socket.
  Guard(std::filesystem::path socket, Judge judge, Log& log);

  SessionState state() const { return session_.state(); }

 private:
  void on_call(const std::string& method, const std::string& payload, const Answer& answer);

  const Judge judge_;
  Log& log_;
  Session session_;
};

}  // namespace topolet::nri
