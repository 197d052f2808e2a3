// Amounts as people write and read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topolet::numa {

/// "3 CPUs", "1 node".
std::string counted(std::size_t count, std::string_view noun);

/// "1.5 GiB"; below a kibibyte "12 B".
std::string bytes_text(std::int64_t bytes);

/// Thousandths: "0.5", "2".
std::string milli_text(std::int64_t milli);

/// "1Gi", "512Mi", "2G" or bytes. Nothing if it is no such amount, or too large.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace topolet::numa
