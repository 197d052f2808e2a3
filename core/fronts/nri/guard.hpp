// Hears from the runtime, before each container is created, which NRI plugins set its CPUs and memory nodes, so that it
// can be told and refused that another one than topolet decides.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/fronts/nri/session.hpp"
#include "core/fronts/nri/validator.hpp"

namespace topolet::nri {

/// A validating plugin: it adjusts nothing. Runtimes of NRI before 0.10 never ask it.
class Guard {
 public:
  /// `socket`: the runtime's NRI socket. `when_late`: as of Validator.
  Guard(std::filesystem::path socket, Validator::Judge judge, std::optional<std::string> when_late, Log& log);

  SessionState state() const { return session_.state(); }

 private:
  void on_call(const std::string& method, const std::string& payload, const Answer& answer);

  const Validator validator_;
  Session session_;
};

}  // namespace topolet::nri
