// PCI addresses as the kernel writes them.
#pragma once

#include <string_view>

namespace topolet::topology {

/// True for "0000:65:00.0", with a domain of at least four digits: hexadecimal, as large or small letters.
bool is_pci_address(std::string_view text);

}  // namespace topolet::topology
