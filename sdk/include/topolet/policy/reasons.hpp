// Pieces of the texts that policies give to people: reasons, denials, errors. See <topolet/policy.hpp>.
#pragma once

#include <topolet/policy/views.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace topolet::sdk {

/// "3 CPUs", "1 node". For nouns whose plural ends in a plain s.
inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// "CPU 3", "CPUs 3-5".
inline std::string cpu_names(const Set& cpus) { return (cpus.size() == 1 ? "CPU " : "CPUs ") + cpus.to_string(); }

/// "node 0", "nodes 0-1"; for no node "the CPUs outside any node", which is what a candidate without nodes has.
inline std::string node_names(topolet_set nodes) {
  const std::size_t count = size_of(nodes);
  if (count == 0) return "the CPUs outside any node";
  return (count == 1 ? "node " : "nodes ") + to_list(nodes);
}

/// A value from outside, such as an annotation's, fit for one line of a log: at most `longest` bytes, and a question
/// mark for each byte that is not printable ASCII.
inline std::string printable(std::string_view value, std::size_t longest = 64) {
  std::string line(value.substr(0, longest));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return value.size() > longest ? line + "..." : line;
}

/// Why a setting of the workload, the annotation topolet.io/NAME, cannot be obeyed: it is none of the `allowed` values.
/// Empty if it is one of them or not set.
inline std::string setting_error(topolet_kvs settings, std::string_view name,
                                 std::initializer_list<std::string_view> allowed) {
  const std::optional<std::string_view> value = find_value(settings, name);
  if (!value || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return "";
  std::string listed;
  for (const std::string_view word : allowed) listed += (listed.empty() ? "'" : ", '") + std::string(word) + '\'';
  return "annotation topolet.io/" + std::string(name) + " = '" + printable(*value) + "': it must be one of " + listed;
}

}  // namespace topolet::sdk
