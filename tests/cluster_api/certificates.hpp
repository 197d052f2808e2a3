// Certificates for tests, made when they are needed, so that no test depends on files or dates.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace topolet::testing {

struct Certificate {
  std::string certificate_pem;
  std::string key_pem;  ///< PKCS #8, without a passphrase
};

/// A certificate authority with a key of its own: no two trust each other's certificates, whatever their names. All
/// keys are EC P-256. What OpenSSL refuses is a std::runtime_error. Thread-safe after construction.
class Ca {
 public:
  /// The owner and purpose of a certificate, and its validity relative to now.
  struct Subject {
    std::string common_name{};                 ///< of a client certificate, the user's name
    std::vector<std::string> organizations{};  ///< of a client certificate, the user's groups
    /// Subject alternative names as OpenSSL writes them: "IP:127.0.0.1,DNS:localhost". May be empty.
    std::string alternative_names{};
    std::chrono::seconds valid_from = std::chrono::hours(-1);
    std::chrono::seconds valid_until = std::chrono::hours(24);
  };

  explicit Ca(const std::string& common_name = "topolet test CA");
  ~Ca();
  Ca(Ca&&) noexcept;
  Ca& operator=(Ca&&) noexcept;

  /// The authority's own certificate, which clients trust.
  const std::string& pem() const;
  /// For a server at 127.0.0.1 and localhost.
  Certificate server_certificate() const;
  /// For a server with the names and times given, such as one that has expired.
  Certificate server_certificate(const Subject& subject) const;
  /// For a server that is a client as well, as one of several replicas that call each other.
  Certificate replica_certificate(const Subject& subject) const;
  Certificate client_certificate(const std::string& user, const std::vector<std::string>& groups = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::testing
