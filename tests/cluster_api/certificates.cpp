#include "tests/cluster_api/certificates.hpp"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <stdexcept>

namespace topolet::testing {
namespace {

template <auto kFree>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, OpensslFree<X509_free>>;
using Memory = std::unique_ptr<BIO, OpensslFree<BIO_free>>;
using Number = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;

void require_openssl(bool is_done, const char* what) {
  if (is_done) return;
  char reason[256];
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  throw std::runtime_error(std::string("cannot ") + what + ": " + reason);
}

Key make_key() {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  require_openssl(key != nullptr, "make a key");
  return key;
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Memory memory(BIO_new(BIO_s_mem()));
  require_openssl(memory && PEM_write_bio_X509(memory.get(), certificate) == 1, "write a certificate");
  return text_of(memory.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Memory memory(BIO_new(BIO_s_mem()));
  require_openssl(memory && PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
                  "write a key");
  return text_of(memory.get());
}

void set_random_serial(X509* certificate) {
  const Number number(BN_new());
  require_openssl(number && BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
                  "number a certificate");
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  const std::basic_string<unsigned char> bytes(value.begin(), value.end());
  require_openssl(
      X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes.data(), static_cast<int>(bytes.size()), -1, 0) == 1,
      "name a certificate");
}

/// Without the signature. The issuer's name is still empty.
X509Certificate unsigned_certificate(const Ca::Subject& subject, EVP_PKEY* key) {
  X509Certificate certificate(X509_new());
  require_openssl(certificate && X509_set_version(certificate.get(), 2) == 1, "make a certificate");
  set_random_serial(certificate.get());
  require_openssl(X509_gmtime_adj(X509_getm_notBefore(certificate.get()), subject.valid_from.count()) &&
                      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), subject.valid_until.count()),
                  "date a certificate");
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  for (const std::string& organization : subject.organizations) add_name(name, "O", organization);
  add_name(name, "CN", subject.common_name);
  require_openssl(X509_set_pubkey(certificate.get(), key) == 1, "make a certificate");
  return certificate;
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  require_openssl(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "extend a certificate");
}

void sign_certificate(X509* certificate, X509* issuer, EVP_PKEY* issuer_key) {
  require_openssl(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
                      X509_sign(certificate, issuer_key, EVP_sha256()) > 0,
                  "sign a certificate");
}

}  // namespace

struct Ca::Impl {
  Certificate issue(const Subject& subject, const char* usage) const {
    const Key leaf_key = make_key();
    const X509Certificate leaf = unsigned_certificate(subject, leaf_key.get());
    add_extension(leaf.get(), certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
    add_extension(leaf.get(), certificate.get(), NID_key_usage, "critical,digitalSignature");
    add_extension(leaf.get(), certificate.get(), NID_ext_key_usage, usage);
    add_extension(leaf.get(), certificate.get(), NID_authority_key_identifier, "keyid:always");
    if (!subject.alternative_names.empty()) {
      add_extension(leaf.get(), certificate.get(), NID_subject_alt_name, subject.alternative_names);
    }
    sign_certificate(leaf.get(), certificate.get(), key.get());
    return {pem_of(leaf.get()), pem_of(leaf_key.get())};
  }

  Key key = make_key();
  X509Certificate certificate;
  std::string pem;
};

Ca::Ca(const std::string& common_name) : impl_(std::make_unique<Impl>()) {
  impl_->certificate = unsigned_certificate({.common_name = common_name}, impl_->key.get());
  X509* const own = impl_->certificate.get();
  add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(own, own, NID_subject_key_identifier, "hash");
  sign_certificate(own, own, impl_->key.get());
  impl_->pem = pem_of(own);
}

Ca::~Ca() = default;
Ca::Ca(Ca&&) noexcept = default;
Ca& Ca::operator=(Ca&&) noexcept = default;

const std::string& Ca::pem() const { return impl_->pem; }

Certificate Ca::server_certificate() const {
  return server_certificate({.common_name = "kube-apiserver", .alternative_names = "IP:127.0.0.1,DNS:localhost"});
}

Certificate Ca::server_certificate(const Subject& subject) const { return impl_->issue(subject, "serverAuth"); }

Certificate Ca::replica_certificate(const Subject& subject) const {
  return impl_->issue(subject, "serverAuth,clientAuth");
}

Certificate Ca::client_certificate(const std::string& user, const std::vector<std::string>& groups) const {
  return impl_->issue({.common_name = user, .organizations = groups}, "clientAuth");
}

}  // namespace topolet::testing
