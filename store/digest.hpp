#pragma once

#include <string>
#include <string_view>

namespace topolet::store {

/// SHA-256 in hexadecimal digits.
std::string digest_of(std::string_view text);

}  // namespace topolet::store
