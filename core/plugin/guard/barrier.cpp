#include "core/plugin/guard/barrier.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "core/base/utf8.hpp"

namespace topolet::plugin {
namespace {

/// C0, DEL and C1: the last are what terminals take for the beginning of a command, too.
bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

/// Returns the length of the printable ASCII at the beginning: the whole of almost every text.
std::size_t printable_ascii_bytes(std::string_view text) {
  const auto is_other = [](unsigned char c) { return c < 0x20 || c >= 0x7f; };
  return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_other) - text.begin());
}

}  // namespace

std::string sanitize_text(topolet_str text) {
  if (text.ptr == nullptr) return {};
  std::string_view rest(text.ptr, std::min(text.len, kMaxPluginTextBytes));
  // Removes the remains of a character that was cut.
  const bool cut = rest.size() < text.len;
  std::string clean;
  while (true) {
    const std::size_t printable = printable_ascii_bytes(rest);
    clean += rest.substr(0, printable);
    rest.remove_prefix(printable);
    if (rest.empty()) break;
    const Utf8Character character = first_utf8_character(rest);
    if (character.bytes == 0) {
      const auto lead = static_cast<unsigned char>(rest.front());
      const bool is_stump = cut && rest.size() < 4 && lead >= 0xc2 && lead <= 0xf4;
      if (is_stump) break;
      clean += '?';
      rest.remove_prefix(1);
      continue;
    }
    if (is_control(character.code)) {
      clean += ' ';
    } else {
      clean += rest.substr(0, character.bytes);
    }
    rest.remove_prefix(character.bytes);
  }
  return clean;
}

}  // namespace topolet::plugin
