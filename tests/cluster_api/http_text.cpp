#include "tests/cluster_api/http_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>

namespace topolet::testing {
namespace {

std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    decoded += is_escape ? static_cast<char>(byte) : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

Query parse_query(const std::string& text) {
  Query query;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('&', begin), text.size());
    std::string parameter = text.substr(begin, end - begin);
    // A plus is a space in queries only.
    for (char& c : parameter) c = c == '+' ? ' ' : c;
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const std::string value = equals < parameter.size() ? parameter.substr(equals + 1) : "";
    query[percent_decoded(parameter.substr(0, equals))] = percent_decoded(value);
    begin = end + 1;
  }
  return query;
}

}  // namespace

HttpTarget parse_target(const std::string& target) {
  const std::size_t end = std::min(target.find('?'), target.size());
  HttpTarget parsed;
  parsed.raw_path = target.substr(0, end);
  parsed.path = percent_decoded(parsed.raw_path);
  if (end < target.size()) parsed.query = parse_query(target.substr(end + 1));
  return parsed;
}

std::string http_head(unsigned code, std::map<std::string, std::string> headers, long length) {
  headers.emplace("Content-Type", "application/json");
  headers.emplace("Cache-Control", "no-cache, private");
  if (length < 0) {
    headers.emplace("Transfer-Encoding", "chunked");
  } else {
    headers.emplace("Content-Length", std::to_string(length));
  }
  const boost::beast::string_view words = boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(code));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", code, std::string(words));
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

std::string http_chunk(const std::string& data) { return fmt::format("{:x}\r\n{}\r\n", data.size(), data); }

std::string bearer_token(const std::string& authorization) {
  const std::string scheme = "Bearer ";
  if (authorization.compare(0, scheme.size(), scheme) != 0) return "";
  return authorization.substr(scheme.size());
}

}  // namespace topolet::testing
