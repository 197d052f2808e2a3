// Random damage to bytes, and how a run of the fuzz tests is repeated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace topolet {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

inline std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

/// At most `longest` random bytes.
inline std::string random_bytes(std::mt19937_64& engine, std::size_t longest) {
  std::string bytes(engine() % (longest + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(engine());
  return bytes;
}

/// A copy that is cut, flipped, stretched or spliced in one to four places.
inline std::string damaged(std::mt19937_64& engine, std::string bytes) {
  const auto below = [&engine](std::uint64_t bound) { return static_cast<std::size_t>(engine() % bound); };
  const std::size_t wounds = 1 + below(4);
  for (std::size_t i = 0; i < wounds && !bytes.empty(); ++i) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min<std::size_t>(1 + below(16), bytes.size() - at);
    switch (below(6)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << below(8)));
        break;
      case 2:
        bytes[at] = static_cast<char>(engine());
        break;
      case 3:
        bytes.insert(at, random_bytes(engine, 19));
        break;
      case 4:
        bytes.erase(at, length);
        break;
      default:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
    }
  }
  return bytes;
}

}  // namespace topolet
