// Small parsers: lists, patterns, PCI addresses.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::gpu {

std::string_view trimmed(std::string_view text);

/// ASCII only.
std::string to_lower(std::string_view text);

/// The non-empty parts between the separators, trimmed.
std::vector<std::string> split(std::string_view text, char separator);

/// A decimal number below 65536; nothing for any other text.
std::optional<std::uint32_t> parse_number(std::string_view text);

/// The kernel's list format, "0-3,8". Skips malformed parts.
sdk::Set parse_cpu_list(std::string_view text);

/// "0000:65:00.0" for any of 0000:65:00.0, 00000000:65:00.0 and 65:00.0, in upper or lower case; nothing for other
/// text.
std::optional<std::string> parse_pci_address(std::string_view text);

/// The last PCI address in a path, as a part of its own (/sys/devices/pci0000:64/0000:64:00.0/0000:65:00.0/nvme) or
/// within one (/dev/disk/by-path/pci-0000:65:00.0-nvme-1).
std::optional<std::string> find_pci_address(std::string_view path);

/// Returns the part of `text` that the pattern's '*' matches: at least one byte, no '/'. An empty string for a pattern
/// without '*' that equals the text.
std::optional<std::string_view> match_pattern(std::string_view pattern, std::string_view text);

/// The pattern with its '*' replaced by `star`.
std::string fill_pattern(std::string_view pattern, std::string_view star);

/// Text from outside made safe to log: control characters and bytes beyond ASCII replaced by '?', cut at `max_length`.
std::string printable(std::string_view text, std::size_t max_length = 80);

}  // namespace topolet::gpu
