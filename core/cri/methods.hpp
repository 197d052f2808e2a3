// The meaning of a gRPC path in the CRI, by name only: requests are not looked into here.
#pragma once

#include <string_view>

namespace topolet::cri {

/// A path taken apart. The views point into the path.
struct Method {
  std::string_view service;      ///< "runtime.v1.RuntimeService"
  std::string_view name;         ///< "CreateContainer"
  bool runtime_service = false;  ///< RuntimeService of v1 or v1alpha2: the one whose calls can be intercepted
  bool image_service = false;    ///< any version's ImageService: goes to the image endpoint
  bool known_unary = false;      ///< may take the unary path; everything else must be relayed as a stream
  bool endless = false;          ///< a stream that ends only when one side goes
};

/// `path` is "/service/method"; anything else is a stream of an unknown service.
Method parse_method(std::string_view path);

}  // namespace topolet::cri
