// Numbers as the network has them.
#pragma once

#include <cstdint>
#include <string>

namespace topolet::nri {

inline void append_big_endian(std::uint32_t number, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>((number >> shift) & 0xff));
}

/// Reads four bytes.
inline std::uint32_t read_big_endian(const char* bytes) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace topolet::nri
