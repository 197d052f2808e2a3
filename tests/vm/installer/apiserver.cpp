// Stands in for the API server on the machine of `tests/vm/run --installer`: it has one Node, whose condition Ready is
// what the kubelet's stand-in says.
//
// Below /run/stand-in: it writes `url`, `ca.crt`, and `kubeconfig` with a client certificate. Its token is "secret".
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/cluster_api/apiserver.hpp"

namespace {

using topolet::testing::ApiServer;
using topolet::testing::Json;

const std::filesystem::path kPlace = "/run/stand-in";
constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kNode = "topolet-vm";

void write(const std::string& name, const std::string& text) {
  std::ofstream(kPlace / (name + ".new")) << text;
  std::filesystem::rename(kPlace / (name + ".new"), kPlace / name);
}

void write_access(const ApiServer& server) {
  const auto client = server.ca().client_certificate(std::string("system:node:") + kNode, {"system:nodes"});
  write("ca.crt", server.ca_pem());
  write("client.crt", client.certificate_pem);
  write("client.key", client.key_pem);
  write("kubeconfig",
        "apiVersion: v1\nkind: Config\nclusters:\n- name: default\n  cluster:\n    certificate-authority: " +
            (kPlace / "ca.crt").string() + "\n    server: " + server.url() + "\nusers:\n- name: default\n  user:\n" +
            "    client-certificate: " + (kPlace / "client.crt").string() +
            "\n    client-key: " + (kPlace / "client.key").string() + "\n");
  write("url", server.url() + "\n");
}

Json conditions(const std::string& status, const std::string& time) {
  return {{{"type", "MemoryPressure"}, {"status", "False"}, {"lastHeartbeatTime", time}},
          {{"type", "Ready"}, {"status", status}, {"lastHeartbeatTime", time}, {"reason", "StandIn"}}};
}

}  // namespace

int main() {
  std::filesystem::create_directories(kPlace);
  ApiServer server({.tokens = {"secret"}});
  server.put(kNodes, {{"metadata", {{"name", kNode}, {"labels", {{"example.com/kept", "1"}}}}}});
  write_access(server);
  std::string told;
  while (true) {
    std::string line;
    std::getline(std::ifstream(kPlace / "node-status"), line);
    if (line != told) {
      const std::size_t space = line.find(' ');
      Json node = *server.get(kNodes, kNode);
      node["status"]["conditions"] = conditions(line.substr(0, space), line.substr(space + 1));
      server.put(kNodes, node);
      told = line;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}
