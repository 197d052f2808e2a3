#include "core/fronts/nri/synchronize.hpp"

#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {

Synchronized answer_synchronize(const std::string& payload) {
  lens::SynchronizeRequest request;
  lens::SynchronizeResponse response;
  response.set_more(request.ParseFromString(payload) && request.more());
  return {response.SerializeAsString(), !response.more()};
}

}  // namespace topolet::nri
