// Where a Kubernetes API server is, and as whom to speak to it.
//
// The folder cluster/api: a client of the Kubernetes API for the programs beside topoletd. It knows the API's manners
// (tokens, lists and watches, errors), and nothing of what is kept there. Namespace topolet::api.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace topolet::api {

/// A PEM text, or a file with one, which is read again for each connection. Both empty: none.
struct Pem {
  std::string text;
  std::string file;

  bool empty() const { return text.empty() && file.empty(); }
};

struct ApiServer {
  std::string url;  ///< "https://10.0.0.1:6443", without a slash at the end
  Pem ca;           ///< none: the authorities that this host trusts
  /// The name in the server's certificate where it is not that of `url`.
  std::string tls_server_name;
  bool skips_verification = false;
  std::string proxy_url;
  std::string token;
  std::string token_file;  ///< is read again, as its content is replaced before it expires
  Pem client_certificate;
  Pem client_key;
};

/// Reads the current context of a kubeconfig. INVALID_ARGUMENT names the file, and the mistake or what is not
/// supported: exec and auth-provider plugins, and passwords.
Result<ApiServer> read_kubeconfig(const std::string& path);

/// The environment that Kubernetes gives each pod: variables with addresses, and the files of its service account.
struct PodEnvironment {
  std::function<std::optional<std::string>(const std::string& variable)> variable;
  std::string service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
/// FAILED_PRECONDITION if this process is in no pod of a cluster.
Result<ApiServer> server_of_this_cluster(const PodEnvironment& environment);

}  // namespace topolet::api
