// Amounts as Kubernetes writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topolet::api {

/// "1500m", "2", "1.5Gi", "1e3": in thousandths, rounded up. Nothing if the text is not a quantity or is negative; the
/// largest number there is for what is larger.
/// Source: the serialization format of the Kubernetes API's type Quantity.
std::optional<std::int64_t> parse_milli(std::string_view text);
/// Parses a quantity in whole units, rounded up.
std::optional<std::int64_t> parse_units(std::string_view text);

/// Returns the suffix after "hugepages-" for pages of so many bytes: "2Mi", "1Gi", "64Ki".
std::string page_size_text(std::int64_t bytes);

}  // namespace topolet::api
