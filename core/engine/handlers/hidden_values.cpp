#include "core/engine/handlers/hidden_values.hpp"

#include <algorithm>
#include <string_view>

namespace topolet::engine {
namespace {

constexpr std::size_t kShortest = 4;
/// Characters that separate the items of a list, or are written otherwise in a text that is quoted: runtimes quote as
/// Go does.
constexpr std::string_view kSeparators = ",;: \t\n\r\"'\\<>&=";

struct Secret {
  std::string_view value;
  std::string_view variable;
};

void replace_all(std::string& text, const Secret& secret) {
  const std::string shown = "(value of " + std::string(secret.variable) + ")";
  for (std::size_t at = 0; (at = text.find(secret.value, at)) != std::string::npos; at += shown.size()) {
    text.replace(at, secret.value.size(), shown);
  }
}

}  // namespace

std::string without_values(std::string text, const std::vector<std::pair<std::string, std::string>>& env) {
  std::vector<Secret> secrets;
  const auto add = [&](std::string_view value, std::string_view variable) {
    if (value.size() >= kShortest && text.find(value) != std::string::npos) secrets.push_back({value, variable});
  };
  for (const auto& [name, value] : env) {
    add(value, name);
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t end = std::min(rest.find_first_of(kSeparators), rest.size());
      add(rest.substr(0, end), name);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  // A value may be a part of another.
  std::stable_sort(secrets.begin(), secrets.end(),
                   [](const Secret& a, const Secret& b) { return a.value.size() > b.value.size(); });
  for (const Secret& secret : secrets) replace_all(text, secret);
  return text;
}

}  // namespace topolet::engine
