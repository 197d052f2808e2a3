#include "core/topology/pci_address.hpp"

namespace topolet::topology {

bool is_pci_address(std::string_view text) {
  constexpr std::string_view kBusDeviceFunction = ":hh:hh.h";
  constexpr std::string_view kHex = "0123456789abcdefABCDEF";
  constexpr std::size_t kShortestDomain = 4;
  if (text.size() < kShortestDomain + kBusDeviceFunction.size()) return false;
  const std::size_t domain = text.size() - kBusDeviceFunction.size();
  if (text.substr(0, domain).find_first_not_of(kHex) != std::string_view::npos) return false;
  for (std::size_t i = 0; i < kBusDeviceFunction.size(); ++i) {
    const char letter = text[domain + i];
    const char expected = kBusDeviceFunction[i];
    if (expected == 'h' ? kHex.find(letter) == std::string_view::npos : letter != expected) return false;
  }
  return true;
}

}  // namespace topolet::topology
