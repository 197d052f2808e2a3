#include "store/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace topolet::store {

std::string digest_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
  std::string digest;
  for (unsigned int i = 0; i < size; ++i) digest += fmt::format("{:02x}", bytes[i]);
  return digest;
}

}  // namespace topolet::store
