// Answers with a message to calls for topoletd itself.
#pragma once

#include <fmt/format.h>

#include "core/base/result.hpp"
#include "core/cri/call.hpp"

namespace topolet::control {

/// Answers `call`, whose request is a `Request`, with the response that `handle(request, response)` fills in.
template <class Request, class Response, class Handle>
void answer(cri::OwnCall& call, Handle handle) {
  Request request;
  if (!request.ParseFromString(call.request())) {
    return call.reject({Code::kInvalidArgument, fmt::format("the request of {} cannot be read", call.path())});
  }
  Response response;
  if (const Status handled = handle(request, response); !handled) return call.reject(handled.error());
  call.answer(response.SerializeAsString());
}

}  // namespace topolet::control
