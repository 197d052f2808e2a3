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
  /// `socket`: the runtime's NRI socket. `when_late`: as of Validator. `released`: as of Session.
  Guard(std::filesystem::path socket, Validator::Judge judge, std::optional<std::string> when_late, Log& log,
        std::optional<ReleasedSession> released = {});

  /// As of Session. The runtime keeps a connection that has ended among those of the validators until the next event,
  /// and refuses the create if that is one.
  std::optional<ReleasedSession> release(std::chrono::milliseconds patience) { return session_.release(patience); }

  SessionState state() const { return session_.state(); }

 private:
  void on_call(const std::string& method, const std::string& payload, const Answer& answer);

  const Validator validator_;
  Session session_;
};

}  // namespace topolet::nri
