#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topolet {

/// The first character of a text: how many bytes it has, and its code point; 0 bytes if the text does not begin with
/// UTF-8.
struct Utf8Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

/// Reads the first character of a text that is not empty. Follows RFC 3629: no overlong forms, no surrogates, nothing
/// above U+10FFFF.
Utf8Character first_utf8_character(std::string_view text);

/// Returns true if the whole text is UTF-8.
bool is_utf8(std::string_view text);

}  // namespace topolet
