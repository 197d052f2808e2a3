#include "core/plugin/call/barrier.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace topolet::plugin {
namespace {

/// The first character of a text that is not empty: its bytes, and its code; 0 bytes if it is no UTF-8.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Character first_character(std::string_view text) {
  struct Form {
    std::size_t bytes;
    std::uint32_t least;
    unsigned char mask, lead;
  };
  static constexpr Form kForms[] = {
      {1, 0, 0x80, 0x00}, {2, 0x80, 0xe0, 0xc0}, {3, 0x800, 0xf0, 0xe0}, {4, 0x10000, 0xf8, 0xf0}};
  const auto lead = static_cast<unsigned char>(text.front());
  for (const Form& form : kForms) {
    if ((lead & form.mask) != form.lead) continue;
    if (text.size() < form.bytes) return {};
    std::uint32_t code = lead & static_cast<unsigned char>(~form.mask);
    for (std::size_t i = 1; i < form.bytes; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xc0U) != 0x80) return {};
      code = code << 6 | (next & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < form.least || code > 0x10ffff || surrogate) return {};
    return {form.bytes, code};
  }
  return {};
}

/// C0, DEL and C1: the last are what terminals take for the beginning of a command, too.
bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

/// How much of the beginning is printable ASCII: of almost every text, all.
std::size_t printable_ascii_bytes(std::string_view text) {
  const auto is_other = [](unsigned char c) { return c < 0x20 || c >= 0x7f; };
  return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_other) - text.begin());
}

}  // namespace

std::string sanitize_text(topolet_str text) {
  if (text.ptr == nullptr) return {};
  std::string_view rest(text.ptr, std::min(text.len, kMaxPluginTextBytes));
  // What the cut left of a last character goes.
  const bool cut = rest.size() < text.len;
  std::string clean;
  while (true) {
    const std::size_t printable = printable_ascii_bytes(rest);
    clean += rest.substr(0, printable);
    rest.remove_prefix(printable);
    if (rest.empty()) break;
    const Character character = first_character(rest);
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

}  // namespace topolet::plugin
