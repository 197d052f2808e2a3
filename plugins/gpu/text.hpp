// Small readers of text: lists, patterns, PCI addresses.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::gpu {

std::string_view trimmed(std::string_view text);

/// In ASCII's lower case.
std::string lower(std::string_view text);

/// The parts between the separators, trimmed, without empty ones.
std::vector<std::string> split(std::string_view text, char separator);

/// Nothing unless all of it is a decimal number below 65536.
std::optional<std::uint32_t> number(std::string_view text);

/// The kernel's list format, "0-3,8"; parts that are none are left out.
sdk::Set cpu_list(std::string_view text);

/// "0000:65:00.0" of any of 0000:65:00.0, 00000000:65:00.0 and 65:00.0, in upper or lower case; nothing for other text.
std::optional<std::string> pci_address(std::string_view text);

/// The last PCI address among the parts of a path such as /sys/devices/pci0000:64/0000:64:00.0/0000:65:00.0/nvme, or
/// within one, as in /dev/disk/by-path/pci-0000:65:00.0-nvme-1.
std::optional<std::string> pci_address_in(std::string_view path);

/// What the pattern's '*' stands for in `text`: at least one byte, no '/'. An empty text if the pattern has no '*' and
/// is the text.
std::optional<std::string_view> matched(std::string_view pattern, std::string_view text);

/// The pattern with its '*' replaced.
std::string filled(std::string_view pattern, std::string_view star);

/// What a person can read of a text from outside: no control characters, and not too long.
std::string shown(std::string_view text, std::size_t longest = 80);

}  // namespace topolet::gpu
