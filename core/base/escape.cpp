#include "core/base/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>

#include "core/base/utf8.hpp"

namespace topolet {
namespace {

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};

/// The hidden characters beyond ASCII: those of Unicode's categories Cc, Cf, Zl and Zp that are not visible, and
/// noncharacters.
constexpr std::array<CodePoints, 15> kHidden = {{{0x7f, 0x9f},
                                                 {0xad, 0xad},
                                                 {0x61c, 0x61c},
                                                 {0x180e, 0x180e},
                                                 {0x200b, 0x200f},
                                                 {0x2028, 0x202e},
                                                 {0x2060, 0x206f},
                                                 {0xfdd0, 0xfdef},
                                                 {0xfeff, 0xfeff},
                                                 {0xfff9, 0xfffb},
                                                 {0xfffe, 0xffff},
                                                 {0x13430, 0x1343f},
                                                 {0x1bca0, 0x1bca3},
                                                 {0x1d173, 0x1d17a},
                                                 {0xe0000, 0xe007f}}};

bool is_hidden(std::uint32_t code) {
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [code](const CodePoints& some) { return code >= some.first && code <= some.last; });
}

/// Returns the length of the printable ASCII without a backslash at the beginning: the whole of almost every text.
std::size_t plain_bytes(std::string_view text) {
  const auto is_other = [](unsigned char c) { return c < 0x20 || c >= 0x7f || c == '\\'; };
  return static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_other) - text.begin());
}

void append_escaped_byte(std::string& line, char byte) {
  constexpr std::string_view kNamed = "\\\\\nn\rr\tt";
  for (std::size_t i = 0; i < kNamed.size(); i += 2) {
    if (byte == kNamed[i]) {
      line += {'\\', kNamed[i + 1]};
      return;
    }
  }
  fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(byte));
}

void append_json_escape(std::string& json, std::uint32_t code) {
  const auto append = [&json](std::uint32_t unit) { fmt::format_to(std::back_inserter(json), "\\u{:04x}", unit); };
  if (code <= 0xffff) return append(code);
  append(0xd800 + ((code - 0x10000) >> 10));
  append(0xdc00 + ((code - 0x10000) & 0x3ffU));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (true) {
    const std::size_t plain = plain_bytes(text);
    line += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return line;
    const Utf8Character character = first_utf8_character(text);
    if (character.bytes <= 1) {
      append_escaped_byte(line, text.front());
    } else if (is_hidden(character.code)) {
      fmt::format_to(std::back_inserter(line), "\\u{{{:x}}}", character.code);
    } else {
      line += text.substr(0, character.bytes);
    }
    text.remove_prefix(std::max<std::size_t>(character.bytes, 1));
  }
}

std::string escaped_json(std::string json) {
  const auto is_other = [](unsigned char c) { return c >= 0x7f; };
  const auto first = std::find_if(json.begin(), json.end(), is_other);
  if (first == json.end()) return json;
  std::string safe(json.begin(), first);
  std::string_view rest = std::string_view(json).substr(safe.size());
  while (!rest.empty()) {
    const Utf8Character character = first_utf8_character(rest);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0 || is_hidden(character.code)) {
      constexpr std::uint32_t kReplacement = 0xfffd;
      append_json_escape(safe, character.bytes == 0 ? kReplacement : character.code);
    } else {
      safe += rest.substr(0, bytes);
    }
    rest.remove_prefix(bytes);
  }
  return safe;
}

void print_error_line(std::string_view text) {
  const std::string line = escaped(text) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace topolet
