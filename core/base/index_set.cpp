#include "core/base/index_set.hpp"

#include <charconv>

#include "core/base/text.hpp"

namespace topolet::detail {
namespace {

Error bad_part(std::string_view part, std::string_view list, const char* why) {
  return {Code::kInvalidArgument,
          "cannot read '" + std::string(part) + "' in the list '" + std::string(list) + "': " + why};
}

bool parse_index(std::string_view text, std::uint32_t& index) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<set_words::Words> parse_index_list(std::string_view list) {
  set_words::Words words;
  std::string_view rest = trimmed(list);
  if (rest.empty()) return words;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view part = trimmed(rest.substr(0, comma));
    const auto dash = part.find('-');
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    if (!parse_index(part.substr(0, dash), first)) return bad_part(part, list, "expected a number or FIRST-LAST");
    last = first;
    if (dash != std::string_view::npos && !parse_index(part.substr(dash + 1), last)) {
      return bad_part(part, list, "expected a number or FIRST-LAST");
    }
    if (last < first) return bad_part(part, list, "the range runs backwards");
    if (last > kMaxOsIndex) return bad_part(part, list, "the highest index is 65535");
    for (std::uint32_t index = first; index <= last; ++index) set_words::insert(words, index);
    if (comma == std::string_view::npos) return words;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace topolet::detail
