#include "core/machine/rdt_classes.hpp"

#include <algorithm>
#include <system_error>

namespace topolet::machine {

std::vector<std::string> rdt_classes(const std::filesystem::path& resctrl) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(resctrl, error), end; !error && at != end; at.increment(error)) {
    // Other directories, such as `info` and `mon_groups`, have no schemata of their own.
    std::error_code ignored;
    if (std::filesystem::exists(at->path() / "schemata", ignored)) names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace topolet::machine
