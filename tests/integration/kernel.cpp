#include "tests/integration/kernel.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

namespace topolet::integration {
namespace {

std::string value_of(const std::string& status, const std::string& key) {
  const std::size_t at = status.find("\n" + key + ":");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return status.substr(begin, status.find('\n', begin) - begin);
}

}  // namespace

Result<Allowed> parse_allowed(const std::string& status) {
  auto cpus = CpuSet::parse(value_of(status, "Cpus_allowed_list"));
  if (!cpus) return cpus.error();
  auto mems = NodeSet::parse(value_of(status, "Mems_allowed_list"));
  if (!mems) return mems.error();
  if (cpus->empty()) return Error{Code::kInternal, "no Cpus_allowed_list in the status"};
  return Allowed{*cpus, *mems};
}

Result<Allowed> allowed_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return Error{Code::kNotFound, fmt::format("there is no process {}", pid)};
  return parse_allowed(text.str());
}

}  // namespace topolet::integration
