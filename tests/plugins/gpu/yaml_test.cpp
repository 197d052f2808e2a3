#include "plugins/gpu/yaml.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>

#include "plugins/gpu/cdi.hpp"

namespace topolet::gpu {
namespace {

TEST(Yaml, ReadsWhatCdiGeneratorsWrite) {
  const nlohmann::json read = read_yaml(R"(---
# generated
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      permissions: 'rw'
    - {path: /dev/dri/card1, major: 226}
    env: [A=b, "C=d # e"]
- name: all
  containerEdits: {}
other:
  - - 1
    - ~
  -
    deep: it''s
  - 'it''s: so'
empty:
url: http://x:80/#y
)");
  EXPECT_EQ(read, nlohmann::json::parse(R"({"kind":"nvidia.com/gpu","devices":[
    {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","permissions":"rw"},
                                                 {"path":"/dev/dri/card1","major":"226"}],"env":["A=b","C=d # e"]}},
    {"name":"all","containerEdits":{}}],
    "other":[["1",null],{"deep":"it''s"},"it's: so"],"empty":null,"url":"http://x:80/#y"})"));
}

TEST(Yaml, RefusesWhatItDoesNotRead) {
  for (const char* const text :
       {"a: |\n  b\n", "a: &b c\n", "a: *b\n", "a: !t b\n", "\ta: b\n", "a: [b,\n c]\n", "a: b\n---\nc: d\n",
        "a: \"b\n", "a: b\n  c: d\n", "- a\nb: c\n", "a: {b: c\n", "a: \"\\q\"\n"}) {
    EXPECT_THROW(read_yaml(text), std::invalid_argument) << text;
  }
  EXPECT_THROW(read_yaml(std::string(100000, '[')), std::invalid_argument);
}

TEST(Yaml, SurvivesWhatIsNoYaml) {
  std::mt19937 dice(1);
  const std::string letters = "ab:- \n\"'[]{},#&|\t~";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::uint32_t length = dice() % 40; length > 0; --length) text += letters[dice() % letters.size()];
    try {
      read_yaml(text);
    } catch (const std::invalid_argument&) {
    }
  }
}

TEST(Cdi, RefusesWhatIsNoSpec) {
  for (const char* const text : {"", "{", "[]", "{\"kind\":\"x\",\"devices\":[]}", "{\"kind\":\"a/b\"}", "kind: a/b\n",
                                 "{\"kind\":\"a/b\",\"devices\":[{}]}"}) {
    EXPECT_THROW(read_cdi_spec(text), std::invalid_argument) << text;
  }
  EXPECT_TRUE(read_cdi_spec("{\"kind\":\"a/b\",\"devices\":[]}").empty());
}

TEST(Cdi, AddsWhatTheWholeSpecBrings) {
  const CdiDevices devices = read_cdi_spec(
      R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"deviceNodes":[{"path":"/dev/x"}]}}],
          "containerEdits":{"deviceNodes":[{"path":"/dev/all"}],"env":["A=B=C","no"]}})");
  ASSERT_EQ(devices.count("a/b=x"), 1U);
  EXPECT_EQ(devices.at("a/b=x").paths, (std::vector<std::string>{"/dev/x", "/dev/all"}));
  EXPECT_EQ(devices.at("a/b=x").env, (std::vector<std::pair<std::string, std::string>>{{"A", "B=C"}}));
}

}  // namespace
}  // namespace topolet::gpu
