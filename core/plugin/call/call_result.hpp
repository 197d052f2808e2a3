// The result of a call into a plugin.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/result.hpp"

namespace topolet::plugin {

/// The reason why a call gave no answer.
enum class CallFault : std::uint8_t {
  kThrew,         ///< it threw, or said that it did
  kBadStatus,     ///< it returned a status that it must not return
  kInvalidReply,  ///< it said something that cannot be, such as a score out of range
  kWroteToLent,   ///< it wrote to what it alone was shown
  kWroteToShown,  ///< what others are shown, too, was written to: by it, or by a thread of another
  kDeclined,      ///< the plugin gave up its vote itself
  kLate,          ///< it did not return in time
};

struct CallFailure {
  CallFault fault = CallFault::kThrew;
  std::string message;  ///< names the plugin

  /// INTERNAL if the plugin misbehaved, UNAVAILABLE if it declined, DEADLINE_EXCEEDED if it was late.
  Error error() const {
    if (fault == CallFault::kDeclined) return {Code::kUnavailable, message};
    return {fault == CallFault::kLate ? Code::kDeadlineExceeded : Code::kInternal, message};
  }
};

/// An answer, or a failure with its cause; a Result to those for whom the cause does not matter.
template <class T>
class [[nodiscard]] CallResult : public Result<T> {
 public:
  using Result<T>::Result;
  CallResult() = default;
  CallResult(Error error) = delete;
  CallResult(CallFailure failure)  // NOLINT(google-explicit-constructor)
      : Result<T>(failure.error()), fault_(failure.fault) {}

  /// Returns why there is no answer. To be called only then.
  CallFailure failure() const { return {fault_, this->error().message}; }

 private:
  CallFault fault_ = CallFault::kThrew;
};

using CallStatus = CallResult<void>;

}  // namespace topolet::plugin
