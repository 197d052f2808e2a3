#include "cluster/extender/extender.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster_api/certificates.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::extender {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Extender, TellsHowLongCallsTakeByItsClock) {
  const TempDir folder;
  const testing::Ca ca;
  const testing::Certificate own = ca.server_certificate();
  folder.write("tls.crt", own.certificate_pem);
  folder.write("tls.key", own.key_pem);
  folder.write("ca.crt", ca.pem());
  const std::shared_ptr<Log> log = make_silent_log();
  const auto tls = http::TlsFiles::load({folder.file("tls.crt"), folder.file("tls.key"), folder.file("ca.crt")}, *log);
  ASSERT_TRUE(tls.has_value()) << tls.error().message;
  Extender::Options options;
  // Three seconds pass from one look to the next.
  options.clock.steady = [now = std::chrono::steady_clock::time_point()]() mutable {
    return now += std::chrono::seconds(3);
  };
  Extender extender(std::move(options), api::ApiServer(), **tls, *log);
  int answers = 0;
  for (const char* path : {"/filter", "/prioritize", "/filter"}) {
    http::HttpRequest request;
    request.path = path;
    extender.answer(std::move(request), [&answers](const http::HttpResponse&) { ++answers; });
  }
  EXPECT_EQ(answers, 3);
  EXPECT_THAT(extender.metrics(), AllOf(HasSubstr("topolet_extender_call_seconds_sum{call=\"filter\"} 6\n"),
                                        HasSubstr("topolet_extender_call_seconds_sum{call=\"prioritize\"} 3\n")));
}

}  // namespace
}  // namespace topolet::extender
