// The RDT classes that containers can be put into.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace topolet::engine {

/// The kernel's groups are not proof enough: somebody else may have made them, and a runtime without RDT refuses every
/// container that names one. After the first refusal a class is offered to no plugin until topoletd restarts, so that
/// the kubelet's next attempt succeeds. One thread.
class RdtClasses {
 public:
  /// `on_machine`: returns the names of the machine's, sorted.
  explicit RdtClasses(std::function<std::vector<std::string>()> on_machine) : on_machine_(std::move(on_machine)) {}

  /// Returns those that no runtime has refused.
  std::vector<std::string> usable() const;
  /// Notes that the runtime has refused a container of this class with these words. False if that was known, or if the
  /// words are about something else.
  bool note_refusal(const std::string& name, const std::string& message);

 private:
  const std::function<std::vector<std::string>()> on_machine_;
  std::set<std::string> refused_;
};

}  // namespace topolet::engine
