// The certificates that a server shows, and those that it takes from clients, as files that are replaced while it runs.
#pragma once

#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"

namespace topolet::http {

/// The common name in a certificate; empty if it has none.
std::string common_name(X509* certificate);

/// All functions may be called on any thread.
class TlsFiles {
 public:
  struct Paths {
    std::string certificate;  ///< PEM, the server's own first and what leads to its authority after it
    std::string key;
    std::string client_ca;  ///< the authorities whose client certificates are taken
  };
  /// The names in a certificate.
  struct Names {
    std::string common_name;
    std::string dns_name;         ///< the first of the alternative names that is one of DNS; empty: there is none
    bool is_for_clients = false;  ///< whether a server may take it as a client's certificate
  };

  /// INVALID_ARGUMENT names the file that cannot be used, and why.
  static Result<std::unique_ptr<TlsFiles>> load(Paths paths, Log& log, Clock clock = {});

  /// Returns the context for a new connection. The files are checked once a second at most, and read again if one has
  /// changed; mistakes are logged, and the old files stay in use.
  std::shared_ptr<boost::asio::ssl::context> current() TOPOLET_EXCLUDES(mutex_);
  Names names() const TOPOLET_EXCLUDES(mutex_);
  const Paths& paths() const { return paths_; }

 private:
  TlsFiles(Paths paths, Log& log, Clock clock) : paths_(std::move(paths)), log_(log), clock_(std::move(clock)) {}

  Status read() TOPOLET_REQUIRES(mutex_);
  std::string marks() const;

  const Paths paths_;
  Log& log_;
  const Clock clock_;
  mutable Mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_ TOPOLET_GUARDED_BY(mutex_);
  Names names_ TOPOLET_GUARDED_BY(mutex_);
  std::string read_marks_ TOPOLET_GUARDED_BY(mutex_);  ///< of the files that were tried last
  std::chrono::steady_clock::time_point looked_ TOPOLET_GUARDED_BY(mutex_){};
};

}  // namespace topolet::http
