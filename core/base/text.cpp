#include "core/base/text.hpp"

namespace topolet {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhiteSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string result(text.substr(0, longest));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > longest ? result + "..." : result;
}

std::string plural(std::string_view noun, std::size_t count) {
  std::string word(noun);
  return count == 1 ? word : word + 's';
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + plural(noun, count);
}

std::string or_list(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

}  // namespace topolet
