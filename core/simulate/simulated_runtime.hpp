// A container runtime that keeps nothing but the books.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/cri/lens.pb.h"

namespace topolet::simulate {

enum class NextAnswer : std::uint8_t {
  kYes,
  kRefuse,  ///< nothing is made
  kLost,    ///< it is made, but the answer never arrives
};

/// Answers at once, on the caller's thread. Containers have no process, so nothing can be read back from a kernel.
class SimulatedRuntime final : public Runtime {
 public:
  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const Answer&)> done) override;

  /// Of one CreateContainer; the ones after it are answered with yes.
  void set_next(NextAnswer next) { next_ = next; }
  void exit(const std::string& container_id, std::int32_t exit_code);

 private:
  struct Container {
    std::string sandbox_id;
    lens::ContainerConfig config;
    std::int32_t state = 0;
    std::int32_t exit_code = 0;
  };

  Answer answer(std::string_view method, const std::string& request);
  Answer run_pod(const std::string& request);
  Answer create(const std::string& request);
  std::string never_started(const lens::CreateContainerRequest& request) const;
  Answer update(const std::string& request);
  Answer status(const std::string& request) const;
  Answer list_containers() const;
  Answer list_sandboxes() const;
  Answer set_state(const std::string& request, std::int32_t state);
  Answer remove(const std::string& request);
  Answer stop_pod(const std::string& request);
  Answer remove_pod(const std::string& request);

  std::map<std::string, lens::PodSandbox> sandboxes_;
  std::map<std::string, Container> containers_;
  std::uint64_t last_number_ = 0;
  NextAnswer next_ = NextAnswer::kYes;
};

/// A call of a simulated kubelet.
class SimulatedCall final : public Call {
 public:
  SimulatedCall(std::string method, std::string request, SimulatedRuntime& runtime);

  const std::string& path() const override { return path_; }
  std::string_view method() const override;
  const std::string& request() const override { return request_; }
  bool cancelled() const override { return false; }
  void forward(std::string patch, std::function<void(const Answer&)> on_answer) override;
  void finish() override { answer_ = from_runtime_; }
  void reject(const Error& error) override { answer_ = Answer{error.code, error.message, {}}; }

  /// What the kubelet got; nothing while the call is under way.
  const std::optional<Answer>& answer() const { return answer_; }

 private:
  const std::string path_;
  const std::string request_;
  SimulatedRuntime& runtime_;
  Answer from_runtime_;
  std::optional<Answer> answer_;
};

}  // namespace topolet::simulate
