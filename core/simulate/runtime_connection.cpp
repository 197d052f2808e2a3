#include "core/simulate/runtime_connection.hpp"

#include <utility>

namespace topolet::simulate {

void RuntimeConnection::call(std::string path, std::string request, std::chrono::milliseconds,
                             std::function<void(const Answer&)> done) {
  send(parse_method(path).name, request, Caller::kDaemon, done);
}

void RuntimeConnection::send(std::string_view method, const std::string& request, Caller caller,
                             const std::function<void(const Answer&)>& done) {
  if (killed_) return;
  const std::optional<Kill::At> due = kill_due(method);
  if (due == Kill::At::kInFlight) in_flight_ = {std::string(method), request, caller};
  if (due && due != Kill::At::kAfterAnswer) return kill();
  const Answer answer = runtime_.answer(method, request, caller);
  if (due) return kill();
  done(answer);
}

std::optional<Kill::At> RuntimeConnection::kill_due(std::string_view method) {
  if (!kill_ || !changes_something(method) || --kill_->calls > 0) return std::nullopt;
  killed_at_ = method;
  const Kill::At at = kill_->at;
  kill_.reset();
  return at;
}

void RuntimeConnection::kill() {
  killed_ = true;
  if (on_killed) on_killed();
}

SimulatedCall::SimulatedCall(const std::string& method, std::string request, RuntimeConnection& connection)
    : path_("/runtime.v1.RuntimeService/" + method), request_(std::move(request)), connection_(connection) {}

void SimulatedCall::forward(std::string patch, std::function<void(const Answer&)> on_answer) {
  connection_.send(method(), request_ + patch, Caller::kKubelet, [this, &on_answer](const Answer& answer) {
    from_runtime_ = answer;
    on_answer(answer);
  });
}

void SimulatedCall::end(Answer answer) {
  if (!connection_.killed()) answer_ = std::move(answer);
}

}  // namespace topolet::simulate
