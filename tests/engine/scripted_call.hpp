// A call of a kubelet to one handler: the test answers for the runtime, and sees what the kubelet is told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/cri/call.hpp"
#include "core/cri/methods.hpp"

namespace topolet::engine {

class ScriptedCall final : public cri::Call {
 public:
  ScriptedCall(const std::string& method, std::string request)
      : path_("/runtime.v1.RuntimeService/" + method), request_(std::move(request)) {}

  const std::string& path() const override { return path_; }
  std::string_view method() const override { return cri::parse_method(path_).name; }
  const std::string& request() const override { return request_; }
  bool cancelled() const override { return false; }
  void forward(std::string patch, std::function<void(const cri::RuntimeResponse&)> on_response) override {
    is_forwarded_ = true;
    patch_ = std::move(patch);
    on_response_ = std::move(on_response);
  }
  void finish() override { kubelet_answer_ = from_runtime_; }
  void reject(const Error& error) override { kubelet_answer_ = cri::RuntimeResponse{error.code, error.message, {}}; }

  bool is_forwarded() const { return is_forwarded_; }
  /// What is appended to the request.
  const std::string& patch() const { return patch_; }
  void answer(cri::RuntimeResponse answer) {
    from_runtime_ = std::move(answer);
    std::exchange(on_response_, nullptr)(from_runtime_);
  }
  /// It is never answered.
  void drop() { on_response_ = nullptr; }
  /// Nothing while the call is under way.
  const std::optional<cri::RuntimeResponse>& kubelet_answer() const { return kubelet_answer_; }

 private:
  const std::string path_;
  const std::string request_;
  bool is_forwarded_ = false;
  std::string patch_;
  std::function<void(const cri::RuntimeResponse&)> on_response_;
  cri::RuntimeResponse from_runtime_;
  std::optional<cri::RuntimeResponse> kubelet_answer_;
};

}  // namespace topolet::engine
