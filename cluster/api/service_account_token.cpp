#include "cluster/api/service_account_token.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "cluster/api/json_fields.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

/// Base64 as in URLs, without padding. Empty if it is none.
std::string decoded_from_url(std::string_view text) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '-', '+');
  std::replace(plain.begin(), plain.end(), '_', '/');
  const std::size_t padding = (4 - plain.size() % 4) % 4;
  plain.append(padding, '=');
  std::vector<unsigned char> bytes(plain.size() / 4 * 3 + 1);
  const int length = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(plain.data()),
                                     static_cast<int>(plain.size()));
  // The padding was decoded as zeros.
  if (length < static_cast<int>(padding)) return "";
  return {bytes.begin(), bytes.begin() + length - static_cast<int>(padding)};
}

std::chrono::seconds time_at(const json& claims, const char* key) {
  const json& value = field(claims, key);
  return std::chrono::seconds(value.is_number_integer() ? value.get<std::int64_t>() : 0);
}

}  // namespace

std::optional<TokenClaims> read_token_claims(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const json claims = json::parse(decoded_from_url(token.substr(first + 1, second - first - 1)), nullptr, false);
  const json& own = field(claims, "kubernetes.io");
  const TokenClaims read = {.name_space = text_field(own, "namespace"),
                            .service_account = text_field(own, "serviceaccount", "name"),
                            .pod = text_field(own, "pod", "name"),
                            .node = text_field(own, "node", "name"),
                            .node_uid = text_field(own, "node", "uid"),
                            .issued_at = time_at(claims, "iat"),
                            .expires_at = time_at(claims, "exp")};
  const bool is_complete = !read.name_space.empty() && !read.service_account.empty();
  return is_complete && read.expires_at > read.issued_at ? std::optional(read) : std::nullopt;
}

}  // namespace topolet::api
