// The results that a child of run_in_child() and the process that keeps it write to shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace topolet {

/// Memory that nobody touches costs nothing.
inline constexpr std::size_t kMaxReportTextBytes = 4 << 20;

enum class Said : unsigned char { kNothing, kResult, kException };

/// Either of them may die at any moment, and must not take along what it had said until then. All zero at the
/// beginning.
struct ChildReport {
  // The child's.
  char current_step[512];
  Said said;
  std::size_t text_bytes;
  char text[kMaxReportTextBytes];
  bool came_back;  ///< a child of it, from foreign code
  char came_back_step[512];
  // The keeper's.
  bool is_complete;
  char not_started[256];  ///< the reason why there was no child
  bool has_ended;         ///< the child, by itself
  int status;             ///< of the child, as waitpid() gives it
  char too_many[64];
  std::size_t processes_started;
  char start_steps[4096];  ///< one a line
  char left[2048];
};

template <std::size_t size>
void write_text(char (&field)[size], std::string_view text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

template <std::size_t size>
std::string text_in(const char (&field)[size]) {
  return std::string(field, ::strnlen(field, size));
}

/// Drops what does not fit.
template <std::size_t size>
void append_line(char (&field)[size], std::string_view line) {
  const std::size_t used = ::strnlen(field, size);
  if (used + line.size() + 2 > size) return;
  std::memcpy(field + used, line.data(), line.size());
  std::memcpy(field + used + line.size(), "\n", 2);
}

}  // namespace topolet
