#include "core/engine/converge/memory_high.hpp"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "core/engine/converge/cpuset_files.hpp"
#include "core/placement/unified_value.hpp"

namespace topolet::engine {
namespace {

std::string file_name() { return std::string(placement::kMemoryHigh); }

std::string mark_of(const std::filesystem::path& cgroup) {
  std::array<char, 256> text{};
  const ssize_t size = ::getxattr(cgroup.c_str(), kMemoryHighMark, text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

Status mark_memory_high(const std::filesystem::path& cgroup, std::int64_t bytes) {
  std::string mark = std::to_string(bytes);
  const auto in_force = marked_memory_high(cgroup);
  if (in_force && *in_force != bytes) mark = std::to_string(*in_force) + ' ' + mark;
  if (mark == mark_of(cgroup)) return {};
  if (::setxattr(cgroup.c_str(), kMemoryHighMark, mark.data(), mark.size(), 0) == 0) return {};
  return Error{Code::kUnavailable, fmt::format("attribute {} of {} cannot be set: {}", kMemoryHighMark, cgroup.string(),
                                               std::strerror(errno))};
}

std::optional<std::int64_t> marked_memory_high(const std::filesystem::path& cgroup) {
  std::ifstream file(cgroup / file_name());
  std::string in_force;
  std::getline(file, in_force);
  std::istringstream marked(mark_of(cgroup));
  for (std::string value; marked >> value;) {
    if (value == in_force) return placement::parse_bytes(value);
  }
  return std::nullopt;
}

Status lift_memory_high(const std::filesystem::path& cgroup) {
  return write_cgroup_file(cgroup / file_name(), std::string(placement::kNoLimit));
}

}  // namespace topolet::engine
