// An operation of a front whose runtime waits for the answer, and changes no container meanwhile.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/operations/operation.hpp"

namespace topolet::engine {

/// Keeps what it is answered. `Kind`: of operations::Operation.
template <class Kind>
class AwaitedOperation : public Kind {
 public:
  std::chrono::steady_clock::time_point arrived() const override { return {}; }
  bool cancelled() const override { return false; }
  std::optional<std::chrono::milliseconds> patience() const override { return std::chrono::milliseconds(1000); }
  void pass() override {}
  void answer() override {}
  void reject(const Error& error) override { rejected = error.message; }

  std::string rejected;
  operations::OnOutcome outcome;  ///< once it is admitted
};

}  // namespace topolet::engine
