#include "core/fronts/nri/guard.hpp"

#include <utility>

#include "core/fronts/nri/synchronize.hpp"

namespace topolet::nri {
namespace {

constexpr const char* kGuardName = "topolet-guard";
/// Validators are asked after all others, in this order among themselves.
constexpr const char* kGuardIndex = "99";

}  // namespace

Guard::Guard(std::filesystem::path socket, Validator::Judge judge, std::optional<std::string> when_late, Log& log,
             std::optional<ReleasedSession> released)
    : validator_(std::move(judge), std::move(when_late), log),
      session_({std::move(socket), kGuardName, kGuardIndex, {Event::kValidateContainerAdjustment}},
               {.on_call = [this](const std::string& method, const std::string& payload,
                                  const Answer& answer) { on_call(method, payload, answer); }},
               log, std::move(released)) {}

void Guard::on_call(const std::string& method, const std::string& payload, const Answer& answer) {
  if (method == "Synchronize") return answer(answer_synchronize(payload).answer);
  if (method != "ValidateContainerAdjustment") return answer(std::string());
  validator_.validate(session_, payload, answer);
}

}  // namespace topolet::nri
