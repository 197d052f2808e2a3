#include "cluster/api/api_server.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "cluster/api/json_fields.hpp"
#include "cluster/api/yaml.hpp"
#include "core/base/read_file.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFileBytes = 4 << 20;

/// Thrown and caught in this file.
struct Mistake {
  std::string what;
};

/// The entry of that name in a list such as "clusters", and of it what is below `part`.
json part_of(const json& config, const std::string& list, const std::string& name, const std::string& part) {
  for (const json& entry : list_field(config, list)) {
    if (text_field(entry, "name") == name) return field(entry, part);
  }
  throw Mistake{fmt::format("it has no '{}' among its {}", name, list)};
}

std::string decoded(const std::string& base64, const std::string& key) {
  std::vector<unsigned char> bytes(base64.size() / 4 * 3 + 3);
  const int length = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(base64.data()),
                                     static_cast<int>(base64.size()));
  if (length < 0) throw Mistake{fmt::format("'{}' is not base64", key)};
  std::string text(bytes.begin(), bytes.begin() + length);
  // The padding was decoded as zeros.
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

class KubeconfigReader {
 public:
  KubeconfigReader(const std::string& path, const json& config)
      : folder_(std::filesystem::path(path).parent_path()), config_(config) {}

  ApiServer read() const {
    const std::string name = text_field(config_, "current-context");
    if (name.empty()) throw Mistake{"it has no current-context"};
    const json context = part_of(config_, "contexts", name, "context");
    ApiServer server;
    read_cluster(part_of(config_, "clusters", text_field(context, "cluster"), "cluster"), server);
    if (const std::string user = text_field(context, "user"); !user.empty())
      read_user(part_of(config_, "users", user, "user"), server);
    return server;
  }

 private:
  void read_cluster(const json& cluster, ApiServer& server) const {
    server.url = text_field(cluster, "server");
    while (server.url.ends_with('/')) server.url.pop_back();
    if (!server.url.starts_with("https://") && !server.url.starts_with("http://"))
      throw Mistake{fmt::format("the server '{}' is no https:// address", server.url)};
    server.ca = pem_at(cluster, "certificate-authority");
    server.tls_server_name = text_field(cluster, "tls-server-name");
    server.proxy_url = text_field(cluster, "proxy-url");
    server.skips_verification = text_field(cluster, "insecure-skip-tls-verify") == "true";
  }

  void read_user(const json& user, ApiServer& server) const {
    for (const char* unknown : {"exec", "auth-provider", "username", "password"}) {
      if (field(user, unknown).is_null()) continue;
      throw Mistake{fmt::format(
          "its user has '{}', which topolet does not use: give it a token, a tokenFile or a client certificate",
          unknown)};
    }
    server.token = text_field(user, "token");
    server.token_file = path_at(user, "tokenFile");
    server.client_certificate = pem_at(user, "client-certificate");
    server.client_key = pem_at(user, "client-key");
    if (server.client_certificate.empty() != server.client_key.empty())
      throw Mistake{"its user has only one of client-certificate and client-key"};
  }

  /// The data wins over the file, as for other clients.
  Pem pem_at(const json& object, const std::string& key) const {
    const std::string data = text_field(object, key + "-data");
    if (!data.empty()) return {decoded(data, key + "-data"), {}};
    return {{}, path_at(object, key)};
  }

  /// A relative path is one beside the kubeconfig.
  std::string path_at(const json& object, const std::string& key) const {
    const std::string path = text_field(object, key);
    return path.empty() ? path : (folder_ / path).string();
  }

  const std::filesystem::path folder_;
  const json& config_;
};

}  // namespace

Result<ApiServer> read_kubeconfig(const std::string& path) {
  const auto fail = [&path](const std::string& why) {
    return Error{Code::kInvalidArgument, fmt::format("the kubeconfig {}: {}", path, why)};
  };
  const Result<std::string> text = read_file(path, kMaxFileBytes);
  if (!text) return fail(text.error().message);
  const Result<json> config = parse_yaml(*text);
  if (!config) return fail(config.error().message);
  try {
    return KubeconfigReader(path, *config).read();
  } catch (const Mistake& mistake) {
    return fail(mistake.what);
  }
}

Result<ApiServer> server_of_this_cluster(const PodEnvironment& environment) {
  const auto host = environment.variable("KUBERNETES_SERVICE_HOST");
  const auto port = environment.variable("KUBERNETES_SERVICE_PORT");
  if (!host || host->empty() || !port || port->empty()) {
    return Error{Code::kFailedPrecondition,
                 "this process is in no pod of a cluster (KUBERNETES_SERVICE_HOST and _PORT are not set); outside of "
                 "one, give it a kubeconfig"};
  }
  const bool is_v6 = host->find(':') != std::string::npos;
  ApiServer server;
  server.url = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", *host, is_v6 ? "]" : "", *port);
  server.ca.file = environment.service_account_folder + "/ca.crt";
  server.token_file = environment.service_account_folder + "/token";
  for (const std::string& file : {server.ca.file, server.token_file}) {
    if (const auto found = read_file(file, kMaxFileBytes); !found) {
      return Error{
          Code::kFailedPrecondition,
          fmt::format("the pod's service account has no {}: {}; does the pod have automountServiceAccountToken: false?",
                      file, found.error().message)};
    }
  }
  return server;
}

}  // namespace topolet::api
