#include "plugins/gpu/yaml.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
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

/// Returns the error that read_yaml() or read_cdi_spec() throws; empty if none.
template <class Read>
std::string error_of(const Read& read, const std::string& text) {
  try {
    read(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string yaml_error(const std::string& text) { return error_of(read_yaml, text); }

TEST(Yaml, ReadsScalarsAndListsOfSeveralLines) {
  EXPECT_EQ(read_yaml("a: |\n  b\nc: >-\n  d\n  e\n"), nlohmann::json::parse(R"({"a":"b\n","c":"d e"})"));
  EXPECT_EQ(read_yaml("a: [b,\n c]\nd: {e: f,\n  g: h}\n"),
            nlohmann::json::parse(R"({"a":["b","c"],"d":{"e":"f","g":"h"}})"));
}

TEST(Yaml, KeepsEveryScalarButNullAsText) {
  EXPECT_EQ(read_yaml("[0, 1.5, yes, true, 0x10, ~, null, 'null', \"~\", \"\"]"),
            nlohmann::json::parse(R"(["0","1.5","yes","true","0x10",null,null,"null","~",""])"));
  EXPECT_EQ(read_yaml(""), nullptr);
  EXPECT_EQ(read_yaml("a: b\na: c\n"), nlohmann::json::parse(R"({"a":"c"})"));
}

TEST(Yaml, RefusesWhatIsNotYaml) {
  for (const char* const text : {"\ta: b\n", "a: \"b\n", "a: b\n  c: d\n", "- a\nb: c\n", "a: {b: c\n", "a: \"\\q\"\n",
                                 "[a] b\n", "{}}", "a: \xff\n", "a: \x01\n"}) {
    EXPECT_NE(yaml_error(text), "") << text;
  }
}

TEST(Yaml, NamesTheLineOfAMistake) {
  EXPECT_EQ(yaml_error("a: b\nc: d: e\n"), "line 2: mapping values are not allowed in this context");
  EXPECT_EQ(yaml_error("a: b\nc: \xff\n"), "line 2: invalid leading UTF-8 octet");
  EXPECT_EQ(yaml_error("a: b\n\nc: &d e\n"), "line 3: anchors, aliases and tags are not allowed in a CDI spec");
}

TEST(Yaml, RefusesAliasesSoThatAShortTextCannotStandForALongOne) {
  for (const char* const text : {"a: &b c\n", "a: *b\n", "a: !t b\n", "&x a: b\n", "- !t a: b\n", "a:\n  *b : c\n",
                                 "&x [a]", "!t {a: b}", "!!str a"}) {
    EXPECT_NE(yaml_error(text).find("anchors, aliases and tags"), std::string::npos) << text << yaml_error(text);
  }
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + "]\n";
  }
  EXPECT_EQ(yaml_error(bomb), "line 1: anchors, aliases and tags are not allowed in a CDI spec");
}

TEST(Yaml, LimitsDepthAndSize) {
  EXPECT_EQ(yaml_error(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(yaml_error(std::string(100000, '[')), "line 1: nested more than 64 levels deep");
  std::string blocks;
  for (std::size_t depth = 0; depth < 100; ++depth) blocks += std::string(depth, ' ') + "-\n";
  EXPECT_EQ(yaml_error(blocks), "line 66: nested more than 64 levels deep");
  std::string many = "[";
  for (int i = 0; i < 1 << 20; ++i) many += "a,";
  EXPECT_EQ(yaml_error(many + ']'), "line 1: more than 1048576 values");
}

TEST(Yaml, TakesOnlyTextForAKey) {
  for (const char* const text : {"[a]: b\n", "{a: b}: c\n", "? - a\n: b\n"}) {
    EXPECT_EQ(yaml_error(text), "line 1: a key must be plain or quoted text without anchors, aliases and tags") << text;
  }
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

TEST(Yaml, SurvivesAnyText) {
  std::mt19937 random(1);
  const std::string letters = "ab:- \n\"'[]{},#&|\t~";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::uint32_t length = random() % 40; length > 0; --length) text += letters[random() % letters.size()];
    try {
      read_yaml(text);
    } catch (const std::invalid_argument&) {
    }
  }
}

std::string cdi_error(const std::string& text) { return error_of(read_cdi_spec, text); }

TEST(Cdi, NamesTheLineOfAMistakeInJsonAndInYaml) {
  EXPECT_EQ(cdi_error("\n{\"kind\": \"a/b\",\n \"devices\": [}\n"),
            "line 3: not JSON, and not YAML either (line 3: did not find expected node content)");
  EXPECT_EQ(cdi_error("{"), "line 1: not JSON, and not YAML either (line 2: did not find expected node content)");
  EXPECT_EQ(cdi_error("kind: a/b\ndevices:\n- name: \"x\n"), "line 4: found unexpected end of stream");
  EXPECT_EQ(cdi_error("{\"kind\": \"a/b\",\n \"x\": " + std::string(64, '[')),
            "line 2: nested more than 64 levels deep");
}

TEST(Cdi, TakesANumberBeyondJsonForText) {
  EXPECT_EQ(read_cdi_spec(R"({"kind":"a/b","x":1e999,"devices":[{"name":"y"}]})").count("a/b=y"), 1U);
}

TEST(Cdi, RefusesWhatIsNotASpec) {
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
  const std::size_t depth = 1000000;
  const std::string brackets(depth, '[');
  EXPECT_EQ(read_cdi_spec(R"({"kind":"a/b","x":"\"[)" + brackets + R"(","devices":[{"name":"x"}]})").size(), 1U);
  EXPECT_EQ(cdi_error(R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"deviceNodes":[)" +
                      std::string(depth, '[') + std::string(depth, ']') + "]}}]}"),
            "line 1: nested more than 64 levels deep");
  std::string names;
  std::string nodes;
  for (int i = 0; i < 1000; ++i) {
    names += R"({"name":")" + std::to_string(i) + "\"},";
    nodes += R"({"path":"/dev/x"},)";
  }
  names.pop_back();
  nodes.pop_back();
  EXPECT_EQ(
      cdi_error(R"({"kind":"a/b","devices":[)" + names + R"(],"containerEdits":{"deviceNodes":[)" + nodes + "]}}"),
      "more than 131072 devices, device nodes and variables");
  EXPECT_EQ(cdi_error(R"({"kind":"a/b","devices":[{"name":"x"},{"name":"x"}]})"), "two of its devices have the name x");
}

}  // namespace
}  // namespace topolet::gpu
