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
       {"a: |\n  b\n", "a: &b c\n", "a: *b\n", "a: !t b\n", "\ta: b\n", "a: [b,\n c]\n", "a: \"b\n", "a: b\n  c: d\n",
        "&x a: b\n", "- !t a: b\n", "a:\n  *b : c\n", "- a\nb: c\n", "a: {b: c\n", "a: \"\\q\"\n"}) {
    EXPECT_THROW(read_yaml(text), std::invalid_argument) << text;
  }
  EXPECT_THROW(read_yaml(std::string(100000, '[')), std::invalid_argument);
}

TEST(Yaml, ReadsTheFirstDocumentAsRuntimesDo) {
  const nlohmann::json wanted = {{"a", "b"}};
  EXPECT_EQ(read_yaml("%YAML 1.1\n---\na: b\n---\nc: d\n"), wanted);
  EXPECT_EQ(read_yaml("a: b\n...\n\t- not read\n"), wanted);
}

TEST(Yaml, ReadsWhatEditorsLeave) {
  EXPECT_EQ(read_yaml("a: b\r\nc:\r\n- d\r\n"), nlohmann::json::parse(R"({"a":"b","c":["d"]})"));
  EXPECT_EQ(read_yaml("a:\tb\n\"c\":\td\n"), nlohmann::json::parse(R"({"a":"b","c":"d"})"));
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

TEST(Cdi, ReadsASpecInBraces) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(read_cdi_spec(mark + "{\n\"kind\": \"a/b\",\n\"devices\": [{\"name\": \"x\"}]\n}\n").count("a/b=x"), 1U);
  EXPECT_EQ(read_cdi_spec(mark + "kind: a/b\ndevices:\n- name: x\n").count("a/b=x"), 1U);
  EXPECT_EQ(read_cdi_spec("{kind: a/b, devices: [{name: x, containerEdits: {}}]}\n").count("a/b=x"), 1U);
}

TEST(Cdi, PassesOverWhatHasOddTypes) {
  const CdiDevices devices = read_cdi_spec(
      R"({"kind":"a/b","cdiVersion":{},"containerEdits":[1],"devices":[
          {"name":7,"containerEdits":{"deviceNodes":{"path":"/dev/x"},"env":"A=b"}},
          {"name":"y","containerEdits":{"deviceNodes":[null,"/dev/x",{"path":["/dev/x"]},[]],"env":[null,1,{},[]]}}]})");
  ASSERT_EQ(devices.size(), 2U);
  for (const auto& [name, device] : devices) EXPECT_TRUE(device.paths.empty() && device.env.empty()) << name;
}

TEST(Cdi, RefusesWhatIsDeepOrBeyondMeasure) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      read_cdi_spec(text);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const std::size_t depth = 1000000;
  const std::string brackets(depth, '[');
  EXPECT_EQ(read_cdi_spec(R"({"kind":"a/b","x":"\"[)" + brackets + R"(","devices":[{"name":"x"}]})").size(), 1U);
  EXPECT_EQ(refusal(R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"deviceNodes":[)" +
                    std::string(depth, '[') + std::string(depth, ']') + "]}}]}"),
            "it is nested too deeply");
  std::string names;
  std::string nodes;
  for (int i = 0; i < 1000; ++i) {
    names += R"({"name":")" + std::to_string(i) + "\"},";
    nodes += R"({"path":"/dev/x"},)";
  }
  names.pop_back();
  nodes.pop_back();
  EXPECT_EQ(refusal(R"({"kind":"a/b","devices":[)" + names + R"(],"containerEdits":{"deviceNodes":[)" + nodes + "]}}"),
            "it has more devices, nodes and variables than are read here");
  EXPECT_EQ(refusal(R"({"kind":"a/b","devices":[{"name":"x"},{"name":"x"}]})"), "two devices of the name x");
}

}  // namespace
}  // namespace topolet::gpu
