#include "core/simulate/runtime_connection.hpp"

#include <utility>

namespace topolet::simulate {

void RuntimeConnection::call(std::string path, std::string request, std::chrono::milliseconds,
                             std::function<void(const cri::RuntimeResponse&)> done) {
  const std::string method(cri::parse_method(path).name);
  const bool is_update = method == "UpdateContainerResources";
  const auto send_now = [this, method, done = std::move(done)](const std::string& sent) {
    send(method, sent, Caller::kDaemon, done);
  };
  auto work = [this, is_update, request = std::move(request), send_now] {
    is_update&& pass_update ? pass_update(request, send_now) : send_now(request);
  };
  if (delay_update && is_update) return delay_update(std::move(work));
  work();
}

void RuntimeConnection::send(std::string_view method, const std::string& request, Caller caller,
                             const std::function<void(const cri::RuntimeResponse&)>& done) {
  if (killed_) return;
  const std::optional<KillPoint::At> due = kill_due(method);
  if (due == KillPoint::At::kInFlight) in_flight_ = {std::string(method), request, caller};
  if (due && due != KillPoint::At::kAfterAnswer) return kill();
  const cri::RuntimeResponse answer = runtime_.answer(method, request, caller);
  if (due) return kill();
  done(answer);
}

std::optional<KillPoint::At> RuntimeConnection::kill_due(std::string_view method) {
  if (!kill_ || !changes_something(method) || --kill_->calls > 0) return std::nullopt;
  killed_during_ = method;
  const KillPoint::At at = kill_->at;
  kill_.reset();
  return at;
}

void RuntimeConnection::kill() {
  killed_ = true;
  if (on_killed) on_killed();
}

SimulatedCall::SimulatedCall(const std::string& method, std::string request, RuntimeConnection& connection)
    : path_("/runtime.v1.RuntimeService/" + method), request_(std::move(request)), connection_(connection) {}

void SimulatedCall::forward(std::string patch, std::function<void(const cri::RuntimeResponse&)> on_response) {
  connection_.send(method(), request_ + patch, Caller::kKubelet,
                   [this, &on_response](const cri::RuntimeResponse& answer) {
                     from_runtime_ = answer;
                     on_response(answer);
                   });
}

void SimulatedCall::end(cri::RuntimeResponse answer) {
  if (!connection_.killed()) answer_ = std::move(answer);
}

}  // namespace topolet::simulate
