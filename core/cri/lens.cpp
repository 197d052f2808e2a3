#include "core/cri/lens.hpp"

namespace topolet {

std::string shown(std::string_view text) {
  constexpr std::size_t kMaxShown = 200;
  std::string result(text.substr(0, kMaxShown));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kMaxShown) result += "...";
  return result;
}

Error unparsable(Code code, std::string_view message_name) {
  return {code,
          std::string(message_name) +
              " cannot be parsed: it is damaged, or not what the Container Runtime Interface v1 calls by that name"};
}

}  // namespace topolet
