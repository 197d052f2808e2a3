#include "core/base/host_name.hpp"

#include <unistd.h>

#include <array>

namespace topolet {

std::string host_name_in_lower_case() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::string lower = name.data();
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

}  // namespace topolet
