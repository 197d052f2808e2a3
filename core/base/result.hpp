// Errors as values: a gRPC status code and a message that names the thing and the way out.
//
// The room core/base: what everything else is written with, results and errors, index sets, the logger, clocks, mutexes
// and file descriptors. Namespace topolet itself. It includes nothing else of this tree.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace topolet {

/// The gRPC status codes, by their wire numbers.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct Error {
  Code code = Code::kUnknown;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

/// A value or an Error, in the shape of C++23's std::expected<T, Error>: test it as a bool, then read value() or
/// error(). Unlike std::expected it takes an Error without std::unexpected around it, and a result that nobody reads is
/// a compiler warning. Reading the one that is not there is a programming error (std::get throws).
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : value_or_error_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : value_or_error_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return value_or_error_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(value_or_error_); }
  const T& value() const& { return std::get<0>(value_or_error_); }
  T&& value() && { return std::get<0>(std::move(value_or_error_)); }
  const Error& error() const { return std::get<1>(value_or_error_); }

  /// The value, or `otherwise` in place of the error.
  T value_or(T otherwise) const& { return has_value() ? value() : std::move(otherwise); }
  T value_or(T otherwise) && { return has_value() ? std::move(*this).value() : std::move(otherwise); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> value_or_error_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return error_.value(); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace topolet
