#include "core/base/descendants.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace topolet {
namespace {

constexpr const char* kProc = "/proc";

bool proc_is_of_this_namespace() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink(std::filesystem::path(kProc) / "self", failed);
  return !failed && self == std::to_string(::getpid());
}

/// "PID (NAME) STATE PARENT …": the name may contain anything. The number of threads is the 20th field.
std::optional<Descendant> parse_stat(std::string_view text) {
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  char state = 0;
  int parent = 0;
  unsigned threads = 0;
  constexpr const char* kFields = " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u";
  const std::string rest(text.substr(end + 1));
  if (std::sscanf(rest.c_str(), kFields, &state, &parent, &threads) != 3) return std::nullopt;  // NOLINT(cert-err34-c)
  Descendant found;
  found.parent = parent;
  found.program = text.substr(begin + 1, end - begin - 1);
  found.has_ended = state == 'Z' || state == 'X';
  found.threads = threads;
  return found;
}

std::optional<Descendant> read_process(const std::filesystem::path& dir) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((dir / "stat").c_str(), "re"), &std::fclose);
  if (file == nullptr) return std::nullopt;
  char text[1024];
  const std::size_t size = std::fread(text, 1, sizeof(text), file.get());
  auto found = parse_stat({text, size});
  if (found) found->process = static_cast<pid_t>(std::strtol(dir.filename().c_str(), nullptr, 10));
  return found;
}

std::multimap<pid_t, Descendant> processes_by_parent() {
  std::multimap<pid_t, Descendant> processes;
  std::error_code failed;
  for (auto entry = std::filesystem::directory_iterator(kProc, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto found = read_process(entry->path())) processes.emplace(found->parent, *std::move(found));
  }
  return processes;
}

}  // namespace

std::vector<Descendant> descendants_of(pid_t ancestor) {
  std::vector<Descendant> found;
  if (!proc_is_of_this_namespace()) return found;
  const std::multimap<pid_t, Descendant> processes = processes_by_parent();
  const auto add_children = [&](pid_t parent) {
    const auto [first, last] = processes.equal_range(parent);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  };
  add_children(ancestor);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i].process);
  return found;
}

}  // namespace topolet
