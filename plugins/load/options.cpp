#include "plugins/load/options.hpp"

#include <array>
#include <string_view>

namespace topolet::load_policy {
namespace {

/// The core's options, each a list.
constexpr std::array<std::string_view, 2> kNamespaceOptions = {"placement.exclusive-namespaces",
                                                               "placement.reserved-namespaces"};

void add_names(std::string_view list, std::vector<std::string>& names) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(", "), list.size());
    if (end > 0 && list.substr(0, end) != "none") names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  read.relieves = options["relieve"] != "off";
  read.besteffort_gives_way = options.integer("besteffort-percent") > 0;
  for (const std::string_view name : kNamespaceOptions) {
    for (const std::string_view list : options.all_configured(name)) add_names(list, read.taking_namespaces);
  }
  return read;
}

}  // namespace topolet::load_policy
