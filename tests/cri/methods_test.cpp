#include "core/cri/methods.hpp"

#include <gtest/gtest.h>

namespace topolet::cri {
namespace {

TEST(Methods, KnowsAUnaryMethodOfEachService) {
  const Method create = parse_method("/runtime.v1.RuntimeService/CreateContainer");
  EXPECT_EQ(create.service, "runtime.v1.RuntimeService");
  EXPECT_EQ(create.name, "CreateContainer");
  EXPECT_TRUE(create.runtime_service);
  EXPECT_FALSE(create.image_service);
  EXPECT_TRUE(create.known_unary);

  const Method pull = parse_method("/runtime.v1alpha2.ImageService/PullImage");
  EXPECT_FALSE(pull.runtime_service);
  EXPECT_TRUE(pull.image_service);
  EXPECT_TRUE(pull.known_unary);
}

TEST(Methods, RelaysStreamingAndUnknownMethodsAsStreams) {
  for (const char* path :
       {"/runtime.v1.RuntimeService/GetContainerEvents", "/runtime.v1.RuntimeService/PullImage",
        "/runtime.v1.ImageService/Version", "/runtime.v1.RuntimeService/NotYetInvented",
        "/runtime.v2.RuntimeService/Version", "/runtime.v2.ImageService/PullImage", "/some.Other/Version"}) {
    EXPECT_FALSE(parse_method(path).known_unary) << path;
  }
}

TEST(Methods, SendsAnyVersionOfTheImageServiceToTheImageEndpoint) {
  EXPECT_TRUE(parse_method("/runtime.v2.ImageService/PullImage").image_service);
  EXPECT_FALSE(parse_method("/other.v2.ImageService/PullImage").image_service);
  EXPECT_FALSE(parse_method("/runtime.v.ImageService/PullImage").image_service);
}

TEST(Methods, InterceptsOnlyVersionsItKnows) {
  EXPECT_TRUE(parse_method("/runtime.v1alpha2.RuntimeService/Anything").runtime_service);
  EXPECT_FALSE(parse_method("/runtime.v2.RuntimeService/CreateContainer").runtime_service);
}

TEST(Methods, SurvivesPathsThatAreNone) {
  for (const char* path : {"", "/", "x", "/x", "x/y", "//"}) {
    EXPECT_FALSE(parse_method(path).known_unary) << path;
    EXPECT_FALSE(parse_method(path).runtime_service) << path;
  }
}

}  // namespace
}  // namespace topolet::cri
