// The answers of the simulated runtime and of the simulated kubelet to one daemon, until it is killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/cri/call.hpp"
#include "core/cri/methods.hpp"
#include "core/simulate/simulated_runtime.hpp"

namespace topolet::simulate {

/// When a daemon is killed around the runtime's answer to a call that changes something.
struct KillPoint {
  enum class At : std::uint8_t {
    kBeforeAnswer,  ///< the call was sent, and the runtime never carries it out
    kAfterAnswer,   ///< the runtime has carried it out, and the daemon never gets the answer
    kInFlight,      ///< the runtime carries it out after the daemon is back and has listed the containers
  };
  At at = At::kBeforeAnswer;
  std::uint32_t calls = 1;  ///< which of the calls from here on
  bool repeat = true;       ///< the kubelet repeats the call during which the daemon was killed
};

/// A call that has reached the runtime.
struct RuntimeCall {
  std::string method;
  std::string request;
  Caller caller = Caller::kKubelet;
};

/// Once the daemon is killed nothing goes out and no answer comes in: work of it that has not ended yet has no effect.
class RuntimeConnection final : public cri::Runtime {
 public:
  /// `kill`: set while a kill is to come; its calls are counted down, and it is reset when it comes.
  RuntimeConnection(SimulatedRuntime& runtime, std::optional<KillPoint>& kill) : runtime_(runtime), kill_(kill) {}

  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override;
  void send(std::string_view method, const std::string& request, Caller caller,
            const std::function<void(const cri::RuntimeResponse&)>& done);

  bool killed() const { return killed_; }
  /// The method that was called when the daemon was killed; empty if it was killed in between.
  const std::string& killed_during() const { return killed_during_; }
  /// The call that the runtime is still at, if there is one.
  const std::optional<RuntimeCall>& in_flight() const { return in_flight_; }
  void kill();
  /// Runs an update that the daemon makes by itself some time later. Without it, updates arrive at once.
  std::function<void(std::function<void()> update)> delay_update;
  /// Is shown an update that the daemon makes by itself, and sends it on, perhaps changed. Without it, it is sent.
  std::function<void(const std::string& request, std::function<void(const std::string& request)> send)> pass_update;
  /// Runs when the daemon is killed, and must end its work.
  std::function<void()> on_killed;

 private:
  std::optional<KillPoint::At> kill_due(std::string_view method);

  SimulatedRuntime& runtime_;
  std::optional<KillPoint>& kill_;
  bool killed_ = false;
  std::string killed_during_;
  std::optional<RuntimeCall> in_flight_;
};

/// A call of a simulated kubelet.
class SimulatedCall final : public cri::Call {
 public:
  SimulatedCall(const std::string& method, std::string request, RuntimeConnection& connection);

  const std::string& path() const override { return path_; }
  std::string_view method() const override { return cri::parse_method(path_).name; }
  const std::string& request() const override { return request_; }
  bool cancelled() const override { return false; }
  void forward(std::string patch, std::function<void(const cri::RuntimeResponse&)> on_response) override;
  void finish() override { end(from_runtime_); }
  void reject(const Error& error) override { end({error.code, error.message, {}}); }

  /// Returns the kubelet's answer; nothing while the call is under way, and for ever if the daemon was killed under it.
  const std::optional<cri::RuntimeResponse>& answer() const { return answer_; }

 private:
  void end(cri::RuntimeResponse answer);

  const std::string path_;
  const std::string request_;
  RuntimeConnection& connection_;
  cri::RuntimeResponse from_runtime_;
  std::optional<cri::RuntimeResponse> answer_;
};

}  // namespace topolet::simulate
