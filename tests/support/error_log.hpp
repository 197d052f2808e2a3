// A log that a test can read.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/log.hpp"

namespace topolet::testing {

/// Keeps the errors that are logged. One thread.
class ErrorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ErrorSink(std::vector<std::string>& errors) : errors_(errors) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (message.level >= spdlog::level::err) errors_.emplace_back(message.payload.data(), message.payload.size());
  }
  void flush_() override {}

  std::vector<std::string>& errors_;
};

/// `errors` must outlive the log.
inline std::shared_ptr<Log> make_error_log(std::vector<std::string>& errors) {
  return std::make_shared<Log>("test", std::make_shared<ErrorSink>(errors));
}

}  // namespace topolet::testing
