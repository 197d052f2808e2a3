#include "plugins/load/options.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
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

/// topoletd itself goes by this option, see README.md.
void check_besteffort_memory(std::string_view value) {
  if (value == "off") return;
  int percent = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), percent);
  if (error == std::errc() && end == value.data() + value.size() && percent >= 1 && percent <= 100) return;
  throw std::invalid_argument("besteffort-memory: '" + std::string(value.substr(0, 64)) +
                              "' is neither 'off' nor a percentage from 1 to 100");
}

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  read.relieves = options["relieve"] != "off";
  read.pressure_permille = options.integer("pressure-percent") * 10;
  check_besteffort_memory(options["besteffort-memory"]);
  read.besteffort_gives_way = options.integer("besteffort-percent") > 0;
  for (const std::string_view name : kNamespaceOptions) {
    for (const std::string_view list : options.all_configured(name)) add_names(list, read.taking_namespaces);
  }
  return read;
}

}  // namespace topolet::load_policy
