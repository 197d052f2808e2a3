// A call of a kubelet to one handler: the test answers for the runtime, and sees what the kubelet is told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/cri/call.hpp"
#include "core/cri/methods.hpp"

namespace topolet::engine {

class ScriptedCall final : public Call {
 public:
  ScriptedCall(const std::string& method, std::string request)
      : path_("/runtime.v1.RuntimeService/" + method), request_(std::move(request)) {}

  const std::string& path() const override { return path_; }
  std::string_view method() const override { return parse_method(path_).name; }
  const std::string& request() const override { return request_; }
  bool cancelled() const override { return false; }
  void forward(std::string /*patch*/, std::function<void(const Answer&)> on_answer) override {
    is_forwarded_ = true;
    on_answer_ = std::move(on_answer);
  }
  void finish() override { told_ = from_runtime_; }
  void reject(const Error& error) override { told_ = Answer{error.code, error.message, {}}; }

  bool is_forwarded() const { return is_forwarded_; }
  void answer(Answer answer) {
    from_runtime_ = std::move(answer);
    std::exchange(on_answer_, nullptr)(from_runtime_);
  }
  /// It is never answered.
  void drop() { on_answer_ = nullptr; }
  /// Nothing while the call is under way.
  const std::optional<Answer>& told() const { return told_; }

 private:
  const std::string path_;
  const std::string request_;
  bool is_forwarded_ = false;
  std::function<void(const Answer&)> on_answer_;
  Answer from_runtime_;
  std::optional<Answer> told_;
};

}  // namespace topolet::engine
