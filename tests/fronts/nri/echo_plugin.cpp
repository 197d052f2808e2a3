// An NRI plugin on topolet's own session, for tests/conformance/nri-frames: it answers Synchronize with the name of the
// first pod. Usage: nri_echo_plugin SOCKET; it runs until it is killed.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/base/log.hpp"
#include "core/fronts/nri/nri.pb.h"
#include "core/fronts/nri/session.hpp"

namespace topolet::nri {
namespace {

std::string echo_first_pod(const std::string& payload) {
  lens::SynchronizeRequest request;
  lens::SynchronizeResponse response;
  if (request.ParseFromString(payload) && request.pods_size() > 0)
    response.add_updates()->set_container_id(request.pods(0).name());
  return response.SerializeAsString();
}

}  // namespace
}  // namespace topolet::nri

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SOCKET\n", argv[0]);
    return 2;
  }
  const auto log = topolet::make_silent_log();
  const topolet::nri::Session session(
      {argv[1], "echo", "50", {}},
      {.on_call =
           [](const std::string& method, const std::string& payload, const topolet::nri::Answer& answer) {
             answer(method == "Synchronize" ? topolet::nri::echo_first_pod(payload) : std::string());
           }},
      *log);
  while (true) pause();
}
