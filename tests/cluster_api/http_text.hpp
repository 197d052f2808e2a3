// Requests and answers of the tests' apiserver as text. It is written by hand so that it can be cut anywhere.
#pragma once

#include <map>
#include <string>

#include "tests/cluster_api/object_store.hpp"

namespace topolet::testing {

struct HttpTarget {
  std::string raw_path;
  std::string path;  ///< decoded
  Query query;
};

/// "/a%20b?c=d" is "/a b" and {"c", "d"}. A wrong escape is left as it is.
HttpTarget parse_target(const std::string& target);

/// With Content-Length, or chunked where `length` is negative. `headers` may replace Content-Type.
std::string http_head(unsigned code, std::map<std::string, std::string> headers, long length);

std::string http_chunk(const std::string& data);

/// The token of "Bearer TOKEN"; empty for anything else.
std::string bearer_token(const std::string& authorization);

}  // namespace topolet::testing
