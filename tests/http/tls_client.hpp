// One POST by HTTPS, with or without a client certificate.
#pragma once

#include <curl/curl.h>

#include <optional>
#include <string>

#include "tests/cluster_api/certificates.hpp"

namespace topolet::testing {

struct TlsReply {
  CURLcode result = CURLE_OK;
  long status = 0;  ///< 0: there was none
  std::string body;
};

/// `ca`: whose certificates the client trusts.
inline TlsReply post_tls(const std::string& url, const Ca& ca, const std::optional<Certificate>& client,
                         const std::string& body) {
  CURL* const handle = curl_easy_init();
  TlsReply reply;
  const auto blob = [](const std::string& text) {
    return curl_blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  };
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_slist* const headers = curl_slist_append(nullptr, "Expect:");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  const curl_blob trusted = blob(ca.pem());
  curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &trusted);
  if (client) {
    const curl_blob certificate = blob(client->certificate_pem);
    const curl_blob key = blob(client->key_pem);
    curl_easy_setopt(handle, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(handle, CURLOPT_SSLKEY_BLOB, &key);
  }
  const auto append = +[](char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
  };
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, 20000L);
  reply.result = curl_easy_perform(handle);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &reply.status);
  curl_slist_free_all(headers);
  curl_easy_cleanup(handle);
  return reply;
}

}  // namespace topolet::testing
