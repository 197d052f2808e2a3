// POSTs by HTTPS, with or without a client certificate.
#pragma once

#include <curl/curl.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster_api/certificates.hpp"

namespace topolet::testing {

struct TlsReply {
  CURLcode result = CURLE_OK;
  long status = 0;   ///< 0: there was none
  long version = 0;  ///< CURL_HTTP_VERSION_1_1 or CURL_HTTP_VERSION_2_0
  std::string body;
};

/// The requests of one client, which keeps its connections.
class TlsClient {
 public:
  /// `ca`: whose certificates the client trusts. `version`: CURL_HTTP_VERSION_2TLS takes what the server offers.
  TlsClient(const Ca& ca, std::optional<Certificate> client, long version = CURL_HTTP_VERSION_2TLS)
      : ca_(ca.pem()), client_(std::move(client)), version_(version) {
    curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  ~TlsClient() { curl_multi_cleanup(multi_); }

  /// `on_body`: called with what has come of the body, each time that more has.
  using OnBody = std::function<void(const std::string&)>;
  TlsReply get(const std::string& url, const OnBody& on_body = {}) {
    return send_all(url, {std::nullopt}, {}, on_body).front();
  }
  /// `header`: "Name: value", beside the usual ones.
  TlsReply post(const std::string& url, const std::string& body, const std::string& header = {}) {
    return send_all(url, {body}, header).front();
  }
  /// All at once; the answers in the same order.
  std::vector<TlsReply> post_all(const std::string& url, const std::vector<std::string>& bodies) {
    return send_all(url, {bodies.begin(), bodies.end()}, {});
  }

  /// Connections that were made, from the first request on.
  long connections() const { return connections_; }

 private:
  /// A GET where there is no body.
  using Body = std::optional<std::string>;
  struct Awaited {
    TlsReply& reply;
    const OnBody& on_body;
  };

  std::vector<TlsReply> send_all(const std::string& url, const std::vector<Body>& bodies, const std::string& header,
                                 const OnBody& on_body = {}) {
    std::vector<TlsReply> replies(bodies.size());
    std::map<CURL*, Awaited> running;
    curl_slist* headers = curl_slist_append(nullptr, "Expect:");
    if (!header.empty()) headers = curl_slist_append(headers, header.c_str());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      CURL* const handle = curl_easy_init();
      Awaited& awaited = running.emplace(handle, Awaited{replies[i], on_body}).first->second;
      set_up(handle, url, headers, bodies[i], awaited);
      curl_multi_add_handle(multi_, handle);
    }
    while (!running.empty()) {
      int left = 0;
      curl_multi_perform(multi_, &left);
      while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) end(message->easy_handle, message->data.result, running);
      }
      if (!running.empty()) curl_multi_poll(multi_, nullptr, 0, 100, nullptr);
    }
    curl_slist_free_all(headers);
    return replies;
  }

  void set_up(CURL* handle, const std::string& url, curl_slist* headers, const Body& body, Awaited& awaited) const {
    const auto blob = [](const std::string& text) {
      return curl_blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
    };
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, version_);
    curl_easy_setopt(handle, CURLOPT_PIPEWAIT, 1L);
    if (body) {
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(body->size()));
      curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, body->c_str());
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    const curl_blob trusted = blob(ca_);
    curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &trusted);
    if (client_) {
      const curl_blob certificate = blob(client_->certificate_pem);
      const curl_blob key = blob(client_->key_pem);
      curl_easy_setopt(handle, CURLOPT_SSLCERT_BLOB, &certificate);
      curl_easy_setopt(handle, CURLOPT_SSLKEY_BLOB, &key);
    }
    const auto append = +[](char* data, std::size_t size, std::size_t count, void* to) {
      const auto& [reply, on_body] = *static_cast<Awaited*>(to);
      reply.body.append(data, size * count);
      if (on_body) on_body(reply.body);
      return size * count;
    };
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &awaited);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, 60000L);
  }

  void end(CURL* handle, CURLcode result, std::map<CURL*, Awaited>& running) {
    TlsReply& reply = running.at(handle).reply;
    long connects = 0;
    reply.result = result;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &reply.status);
    curl_easy_getinfo(handle, CURLINFO_HTTP_VERSION, &reply.version);
    curl_easy_getinfo(handle, CURLINFO_NUM_CONNECTS, &connects);
    connections_ += connects;
    running.erase(handle);
    curl_multi_remove_handle(multi_, handle);
    curl_easy_cleanup(handle);
  }

  const std::string ca_;
  const std::optional<Certificate> client_;
  const long version_;
  CURLM* const multi_ = curl_multi_init();
  long connections_ = 0;
};

/// One POST on a connection of its own.
inline TlsReply post_tls(const std::string& url, const Ca& ca, const std::optional<Certificate>& client,
                         const std::string& body, long version = CURL_HTTP_VERSION_2TLS) {
  return TlsClient(ca, client, version).post(url, body);
}

}  // namespace topolet::testing
