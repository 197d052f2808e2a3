// A server with certificates: whom it serves, and what becomes of files that are replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "cluster/http/http_server.hpp"
#include "core/base/log.hpp"
#include "tests/cluster_api/certificates.hpp"
#include "tests/http/http_client.hpp"
#include "tests/http/tls_client.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::http {
namespace {

using testing::Ca;
using testing::Certificate;
using ::testing::HasSubstr;

using testing::TlsClient;

/// With HTTP/1.1 and with HTTP/2.
class TlsTest : public ::testing::TestWithParam<long> {
 protected:
  void SetUp() override {
    write(ca_, "server");
    auto files = TlsFiles::load(paths(), *log_, clock_.clock());
    ASSERT_TRUE(files.has_value()) << files.error().message;
    files_ = *std::move(files);
    HttpServer::Options options;
    options.address = "127.0.0.1:0";
    options.tls = files_.get();
    options.max_body_bytes = 1000;
    options.request_timeout = std::chrono::seconds(2);
    options.clock = clock_.clock();
    HttpServer::Handlers handlers;
    handlers.answer_post = [](const HttpRequest& request, const HttpServer::Handlers::Respond& respond) {
      std::thread([request, respond] {
        respond({200, "text/plain", request.client_name + " said " + request.body});
      }).detach();
    };
    handlers.refuse_client = [](const std::string& name) {
      return name == "stranger" ? std::optional(HttpResponse{403, "text/plain", "no\n"}) : std::nullopt;
    };
    auto opened = HttpServer::open(std::move(options), std::move(handlers));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    server_ = *std::move(opened);
  }
  TlsFiles::Paths paths() const {
    const std::string folder = folder_.path().string();
    return {folder + "/tls.crt", folder + "/tls.key", folder + "/ca.crt"};
  }
  void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  void write(const Ca& ca, const std::string& name) {
    const Certificate own =
        ca.server_certificate({.common_name = name, .alternative_names = "IP:127.0.0.1,DNS:" + name + ".example"});
    write_text(paths().certificate, own.certificate_pem);
    write_text(paths().key, own.key_pem);
    write_text(paths().client_ca, ca.pem());
  }
  /// After all that is underway.
  void pass(std::chrono::milliseconds time) {
    server_->run_due();
    clock_.advance(time);
    server_->run_due();
  }
  std::string url() const { return "https://" + server_->address() + "/filter"; }
  testing::TlsReply post(const Ca& ca, const std::optional<Certificate>& client, const std::string& body) {
    return testing::post_tls(url(), ca, client, body, GetParam());
  }

  const std::shared_ptr<Log> log_ = make_silent_log();
  testing::ManualClock clock_;
  TempDir folder_;
  Ca ca_;
  std::unique_ptr<TlsFiles> files_;
  std::unique_ptr<HttpServer> server_;
};

TEST_P(TlsTest, ServesClientsWithACertificateAndKnowsTheirName) {
  EXPECT_EQ(files_->names().common_name, "server");
  EXPECT_EQ(files_->names().dns_name, "server.example");
  const testing::TlsReply reply = post(ca_, ca_.client_certificate("system:kube-scheduler"), "hello");
  EXPECT_EQ(reply.status, 200) << curl_easy_strerror(reply.result);
  EXPECT_EQ(reply.body, "system:kube-scheduler said hello");
  EXPECT_EQ(reply.version, GetParam() == CURL_HTTP_VERSION_1_1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2_0);
  EXPECT_EQ(post(ca_, ca_.client_certificate("c"), std::string(1001, 'x')).status, 413);
}

TEST_P(TlsTest, ServesNobodyElse) {
  EXPECT_EQ(post(ca_, std::nullopt, "hello").status, 0);
  EXPECT_EQ(post(ca_, ca_.client_certificate("stranger"), "hello").status, 403);
  const Ca other;
  EXPECT_EQ(post(ca_, other.client_certificate("system:kube-scheduler"), "hello").status, 0);
  testing::HttpConnection plain(server_->address());
  plain.send("POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(plain.read_all(), ::testing::Not(HasSubstr("200")));
  testing::HttpConnection silent(server_->address());
  EXPECT_EQ(post(ca_, ca_.client_certificate("c"), "x").status, 200) << "it goes on";
  pass(std::chrono::milliseconds(1999));
  EXPECT_TRUE(silent.is_silent());
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(silent.read_all(), "") << "a handshake that is never begun ends after the timeout";
}

TEST_P(TlsTest, TakesNewFilesAndKeepsTheOldOnesWhereTheNewCannotBeUsed) {
  EXPECT_EQ(post(ca_, ca_.client_certificate("c"), "x").status, 200);
  const Ca second;
  write(second, "second");
  pass(std::chrono::milliseconds(999));
  EXPECT_EQ(post(ca_, ca_.client_certificate("c"), "x").status, 200) << "it looks once a second";
  pass(std::chrono::milliseconds(1));
  EXPECT_EQ(post(second, second.client_certificate("c"), "x").status, 200);
  EXPECT_EQ(files_->names().common_name, "second");
  EXPECT_EQ(post(second, ca_.client_certificate("c"), "x").status, 0) << "the old authority is not taken any more";
  write_text(paths().key, "no key");
  pass(std::chrono::seconds(1));
  EXPECT_EQ(post(second, second.client_certificate("c"), "x").status, 200);
}

TEST_P(TlsTest, LooksAnewAtAClientThatWasThereBeforeTheFilesChanged) {
  TlsClient client(ca_, ca_.client_certificate("c"), GetParam());
  EXPECT_EQ(client.post(url(), "x").status, 200);
  EXPECT_EQ(client.post(url(), "x").status, 200);
  EXPECT_EQ(client.connections(), 1);
  // The same certificate of the server, and another authority of clients.
  write_text(paths().client_ca, Ca().pem());
  pass(std::chrono::seconds(1));
  EXPECT_EQ(client.post(url(), "x").status, 200) << "it is answered, and told to begin anew";
  EXPECT_EQ(client.post(url(), "x").status, 0);
  EXPECT_EQ(client.connections(), 2);
}

TEST_P(TlsTest, NamesTheFileThatCannotBeUsed) {
  write_text(paths().client_ca, "");
  const auto empty = TlsFiles::load(paths(), *log_);
  ASSERT_FALSE(empty.has_value());
  EXPECT_THAT(empty.error().message, HasSubstr("/ca.crt: "));
  const auto missing = TlsFiles::load({"/nowhere/tls.crt", "", ""}, *log_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "/nowhere/tls.crt: No such file or directory");
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsTest, ::testing::Values(CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_2TLS),
                         [](const auto& version) {
                           return version.param == CURL_HTTP_VERSION_1_1 ? "Http1" : "Http2";
                         });

}  // namespace
}  // namespace topolet::http
