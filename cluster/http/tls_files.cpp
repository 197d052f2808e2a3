#include "cluster/http/tls_files.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace topolet::http {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// How often the files are looked at.
constexpr std::chrono::seconds kLookEvery{1};

TlsFiles::Names names_in(X509* certificate) {
  TlsFiles::Names names;
  names.common_name = common_name(certificate);
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> alternatives(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; alternatives && i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
    const GENERAL_NAME* alternative = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (alternative->type != GEN_DNS) continue;
    const ASN1_IA5STRING* text = alternative->d.dNSName;
    names.dns_name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<std::size_t>(ASN1_STRING_length(text)));
    break;
  }
  names.is_for_clients = X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
  return names;
}

/// HTTP/2 if the client speaks it, and HTTP/1.1 otherwise.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  static constexpr std::array<unsigned char, 12> kServed{2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* match = nullptr;
  const int found = SSL_select_next_proto(&match, chosen_size, kServed.data(), kServed.size(), offered, offered_size);
  *chosen = match;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

std::string common_name(X509* certificate) {
  std::array<char, 256> name{};
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                                               static_cast<int>(name.size()));
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : std::string();
}

Result<std::unique_ptr<TlsFiles>> TlsFiles::load(Paths paths, Log& log, Clock clock) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(std::move(paths), log, std::move(clock)));
  MutexLock lock(files->mutex_);
  if (const Status read = files->read(); !read) return read.error();
  return files;
}

/// Returns a text that differs between versions of the files.
std::string TlsFiles::marks() const {
  std::string marks;
  for (const std::string& path : {paths_.certificate, paths_.key, paths_.client_ca}) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) status = {};
    marks += fmt::format("{}:{}:{}.{};", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return marks;
}

Status TlsFiles::read() {
  read_marks_ = marks();
  const auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  const auto unusable = [](const std::string& path, const error_code& error) {
    return Error{Code::kInvalidArgument, fmt::format("{}: {}", path, error.message())};
  };
  for (const std::string& path : {paths_.certificate, paths_.key, paths_.client_ca}) {
    if (::access(path.c_str(), R_OK) == 0) continue;
    return Error{Code::kInvalidArgument, fmt::format("{}: {}", path, std::generic_category().message(errno))};
  }
  error_code error;
  // OpenSSL would ask for one on the terminal.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); }, error);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
  context->use_certificate_chain_file(paths_.certificate, error);
  if (error) return unusable(paths_.certificate, error);
  context->use_private_key_file(paths_.key, ssl::context::pem, error);
  if (error) return unusable(paths_.key, error);
  context->load_verify_file(paths_.client_ca, error);
  if (error) return unusable(paths_.client_ca, error);
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  SSL_CTX* const native = context->native_handle();
  // Connections that are resumed would keep a client whose authority was taken away.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  SSL_CTX_set_alpn_select_cb(native, &choose_protocol, nullptr);
  names_ = names_in(SSL_CTX_get0_certificate(native));
  context_ = context;
  return {};
}

std::shared_ptr<ssl::context> TlsFiles::current() {
  MutexLock lock(mutex_);
  const auto now = clock_.steady();
  if (now - looked_ < kLookEvery) return context_;
  looked_ = now;
  if (marks() == read_marks_) return context_;
  if (const Status read_again = read(); read_again) {
    log_.info("the certificates have changed: {}", paths_.certificate);
  } else {
    log_.warn("the new certificates cannot be used, the old ones stay: {}", read_again.error().message);
  }
  return context_;
}

TlsFiles::Names TlsFiles::names() const {
  MutexLock lock(mutex_);
  return names_;
}

}  // namespace topolet::http
