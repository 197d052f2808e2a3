// Amounts of memory and CPU as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topolet::numa {

/// "1.5 GiB"; below a kibibyte "12 B".
std::string format_bytes(std::int64_t bytes);

/// Thousandths of a CPU as CPUs: "0.5", "2".
std::string format_milli(std::int64_t milli);

/// Formats CPUs with the noun: "0.5 CPUs", "1 CPU".
std::string format_milli_cpus(std::int64_t milli);

/// Kubernetes quantities of memory: "1Gi", "512Mi", "2G" or bytes. Nothing if the text is not one, or the amount is too
/// large for the type.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Zero for a negative amount, which stands for "unknown" or "none".
inline std::int64_t non_negative(std::int64_t amount) { return amount < 0 ? 0 : amount; }

}  // namespace topolet::numa
