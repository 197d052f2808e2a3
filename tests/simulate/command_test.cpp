// `topolet simulate` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/simulate/operation.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Ended {
  int code = -1;
  std::string out;
};

class SimulateCommand : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(directory_.file(name)) << text;
    return directory_.file(name);
  }

  /// With stderr in `out` too.
  Ended run(const std::string& arguments) {
    const std::string command = std::string(TOPOLET_COMMAND) + " simulate " + arguments + " 2>&1";
    Ended ended;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> chunk{};
    while (std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) ended.out += chunk.data();
    ended.code = ::pclose(pipe) / 256;
    return ended;
  }

  std::vector<json> lines(const std::string& text) {
    std::vector<json> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind('{', 0) == 0) all.push_back(json::parse(line));
    }
    return all;
  }

  /// No vote is to be lost because this machine is busy.
  const std::string machine_ = "--topology 'pack:2 numa:1 core:4 pu:2' --placement.deadline-ms=60000 ";
  /// A plugin outside any plugin directory, which everybody may write.
  std::string loose_plugin() {
    const std::filesystem::path file = directory_.file("loose/lively.so");
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::copy_file(std::string(TOPOLET_BROKEN_DIR) + "/lively.so", file);
    std::filesystem::permissions(file.parent_path(), std::filesystem::perms::all);
    std::filesystem::permissions(file, std::filesystem::perms::all);
    return file.string();
  }

  static constexpr const char* kOneContainer =
      "{\"op\":\"run_pod\",\"pod\":\"p\",\"qos\":\"guaranteed\"}\n"
      "{\"op\":\"create\",\"pod\":\"p\",\"container\":\"c\",\"cpu_request_milli\":2000,"
      "\"cpu_limit_milli\":2000,\"memory_limit\":4096}\n";
  topolet::TempDir directory_;
};

TEST_F(SimulateCommand, AnswersEachLineWithAnObjectAndEndsWith2WhereOneWasBad) {
  const std::string workload = file("w.jsonl",
                                    "{\"op\":\"run_pod\",\"pod\":\"p\",\"qos\":\"guaranteed\"}\n"
                                    "\n"
                                    "{\"op\":\"stat\"}\n"
                                    "{\"op\":\"create\",\"pod\":\"p\",\"container\":\"c\",\"cpu_request_milli\":2000,"
                                    "\"cpu_limit_milli\":2000,\"memory_limit\":4096}\n");
  const std::string config = file("c.conf", "[plugins]\nenable = numa\n");
  const Ended ended = run(machine_ + "--json --explain --config " + config + " --workload " + workload);
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("topolet simulate: line 3: op is \"stat\"; "));
  EXPECT_THAT(ended.out, HasSubstr("topolet simulate: 1 line was not valid\n"));
  const std::vector<json> all = lines(ended.out);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[1]["outcome"], "error");
  EXPECT_EQ(all[1]["line"], 3);
  EXPECT_EQ(all[2]["outcome"], "placed");
  EXPECT_EQ(all[2]["cpus"], "0-1");
  EXPECT_EQ(all[2]["changed"], json::array());
  EXPECT_EQ(all[2]["verdicts"]["candidates"], 3);
}

TEST_F(SimulateCommand, SaysWhichLinesAreNotValidAndRunsTheOthers) {
  const std::string workload = file("w.jsonl", "nonsense\n[]\n{\"op\":\"run_pod\",\"pod\":\"p\"}\n{\"op\":\"stop\"}\n");
  const Ended ended = run(machine_ + "--workload " + workload);
  EXPECT_EQ(ended.code, 2);
  for (const char* line : {"line 1: this is not JSON", "line 2: the line is not a JSON object", "line 4: stop needs"}) {
    EXPECT_THAT(ended.out, HasSubstr(std::string("topolet simulate: ") + line));
  }
  EXPECT_THAT(ended.out, AllOf(HasSubstr("3 lines were not valid"), Not(HasSubstr("line 3: "))));
  EXPECT_THAT(ended.out, HasSubstr("3     run_pod  p   ok "));
}

TEST_F(SimulateCommand, TakesNoFailureOfTheRuntimeForAnInvalidLine) {
  const std::string workload = file("w.jsonl",
                                    "{\"op\":\"restart\",\"at\":\"before-answer\",\"repeat\":false}\n"
                                    "{\"op\":\"run_pod\",\"pod\":\"p\"}\n");
  const Ended ended = run(machine_ + "--json --workload " + workload);
  EXPECT_EQ(ended.code, 0) << ended.out;
  const std::vector<json> all = lines(ended.out);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1]["outcome"], "error");
  EXPECT_FALSE(all[1].contains("line"));
}

TEST_F(SimulateCommand, HelpNamesEveryOperationAndField) {
  const Ended help = run("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(run("-h").out, help.out);
  std::ifstream readme(std::string(TOPOLET_SOURCE_DIR) + "/core/simulate/README.md");
  const std::string document((std::istreambuf_iterator<char>(readme)), {});
  for (const OperationFields& operation : operation_fields()) {
    EXPECT_THAT(help.out, HasSubstr("\n  " + operation.op + " "));
    EXPECT_THAT(document, HasSubstr('`' + operation.op + '`'));
    for (const auto* fields : {&operation.required, &operation.optional}) {
      for (const std::string& field : *fields) {
        EXPECT_THAT(help.out, HasSubstr(field));
        EXPECT_THAT(document, HasSubstr('`' + field));
      }
    }
  }
}

TEST_F(SimulateCommand, SaysWhyContainersMoved) {
  const std::string workload = file("w.jsonl",
                                    "{\"op\":\"run_pod\",\"pod\":\"p\",\"qos\":\"guaranteed\"}\n"
                                    "{\"op\":\"create\",\"pod\":\"p\",\"container\":\"c\",\"cpu_request_milli\":2000,"
                                    "\"cpu_limit_milli\":2000,\"memory_limit\":4096}\n"
                                    "{\"op\":\"offline\",\"cpus\":\"1\"}\n");
  const std::vector<json> all = lines(run(machine_ + "--json --workload " + workload).out);
  ASSERT_THAT(all, SizeIs(3));
  ASSERT_THAT(all[2]["changed"], SizeIs(1));
  EXPECT_THAT(all[2]["changed"][0]["reason"].get<std::string>(), HasSubstr("CPU 1 is no longer available; "));
  EXPECT_THAT(run(machine_ + "--workload " + workload).out,
              HasSubstr("p/c moves to 0,2 (CPU 1 is no longer available; "));
}

TEST_F(SimulateCommand, DrawsWhoHoldsWhat) {
  const std::string workload = file("w.jsonl",
                                    "{\"op\":\"run_pod\",\"pod\":\"p\",\"qos\":\"guaranteed\"}\n"
                                    "{\"op\":\"create\",\"pod\":\"p\",\"container\":\"c\",\"cpu_request_milli\":3000,"
                                    "\"cpu_limit_milli\":3000,\"memory_limit\":4096}\n"
                                    "{\"op\":\"occupy\",\"cpus\":\"15\"}\n"
                                    "{\"op\":\"offline\",\"cpus\":\"14\"}\n");
  const Ended ended = run(machine_ + "--plugins.enable=numa --placement.reserved-cpus=8 --workload " + workload);
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("[..] [..] [..] [..]"));
  EXPECT_THAT(ended.out, HasSubstr("[rA] [AA] [..] [o]"));
  EXPECT_THAT(ended.out, HasSubstr("A p/c: 9-11"));
  EXPECT_THAT(ended.out, HasSubstr("offline: 14"));
}

TEST_F(SimulateCommand, EnablesAPluginFromAnywhere) {
  const std::string workload = file("w.jsonl", kOneContainer);
  const std::string config = file("c.conf", "[plugins]\nenable = numa\n[lively]\nanswer = good\n");
  const std::string arguments = machine_ + "--json --explain --config " + config + " --workload " + workload;
  EXPECT_EQ(run(arguments).code, 2) << "the section is of no plugin that is enabled";
  const Ended ended = run(arguments + " --plugin " + loose_plugin());
  EXPECT_EQ(ended.code, 0) << ended.out;
  const json create = lines(ended.out).at(1);
  EXPECT_EQ(create["plugins"]["added"], json::parse(R"([{"pod":"p","container":"c","env":{"NAME":"value"},
                                                        "annotations":{"NAME":"value"}}])"));
  EXPECT_THAT(create["verdicts"].dump(), HasSubstr("\"policy\":\"numa\""));
  EXPECT_THAT(run(machine_ + "--workload " + workload + " --plugin " + config).out,
              HasSubstr("--plugin: " + config + ": a plugin's file is called NAME.so"));
  EXPECT_THAT(run(machine_ + "--workload " + workload + " --plugin /nowhere/x.so").out,
              HasSubstr("--plugin: plugin x: /nowhere/x.so: No such file"));
}

TEST_F(SimulateCommand, ExplainsWhatPluginsDoBesideTheirVotes) {
  const std::string workload = file("w.jsonl", kOneContainer);
  const std::string arguments =
      machine_ + "--lively.answer=good --explain --plugin " + loose_plugin() + " --workload " + workload;
  const std::vector<json> all = lines(run(arguments + " --json").out);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0]["plugins"]["state"], json::parse(R"([{"plugin":"lively","key":"NAME","bytes":5,"value":"value"}])"));
  EXPECT_EQ(all[1]["plugins"]["events"],
            json::parse(R"([{"event":"placed","pod":"p","container":"c","plugins":["lively"]},
                            {"event":"started","pod":"p","container":"c","plugins":["lively"]}])"));
  EXPECT_EQ(all[1]["plugins"]["state"], json::parse(R"([{"plugin":"lively","key":"c","bytes":1,"value":"0"},
                                                        {"plugin":"lively","key":"c","bytes":1,"value":"1"}])"));
  EXPECT_THAT(run(arguments).out,
              AllOf(HasSubstr("      state of lively: NAME = value (5 bytes)\n"),
                    HasSubstr("      env of p/c: NAME=value\n"), HasSubstr("      event placed of p/c: lively\n")));
  EXPECT_FALSE(lines(run(machine_ + "--json --workload " + workload).out).at(1).contains("plugins"));
}

TEST_F(SimulateCommand, SaysWhatIsMissingOrWrong) {
  const std::string workload = file("w.jsonl", "");
  EXPECT_THAT(run("--workload " + workload).out, HasSubstr("--topology"));
  EXPECT_THAT(run(machine_).out, HasSubstr("--workload"));
  EXPECT_THAT(run(machine_ + "--workload /nowhere").out, HasSubstr("cannot read /nowhere"));
  EXPECT_THAT(run("--topology nonsense --workload " + workload).out, HasSubstr("nonsense"));
  EXPECT_THAT(run(machine_ + "--plugins.enable=nmua --workload " + workload).out, HasSubstr("nmua"));
  const std::string distances = file("slit", "10 20 30");
  EXPECT_THAT(run(machine_ + "--distances " + distances + " --workload " + workload).out,
              HasSubstr("3 distances for 2 NUMA nodes"));
  for (const char* bad : {"", "--topology", "--jsn"}) EXPECT_EQ(run(bad).code, 2) << bad;
}

TEST_F(SimulateCommand, RunsTheExampleOfTheReadme) {
  const std::string deploy = std::string(TOPOLET_SOURCE_DIR) + "/deploy/";
  const Ended ended =
      run(machine_ + "--config " + deploy + "example.conf --workload " + deploy + "example-workload.jsonl");
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("trader/main  placed"));
  EXPECT_THAT(ended.out, HasSubstr("numa: node 1 has only 8 CPUs, but the container requests 10"));
}

TEST_F(SimulateCommand, GivesTheSameBytesAgain) {
  std::string text;
  for (int pod = 0; pod < 6; ++pod) {
    const std::string name = std::to_string(pod);
    text += "{\"op\":\"run_pod\",\"pod\":\"" + name + "\",\"qos\":\"guaranteed\"}\n{\"op\":\"create\",\"pod\":\"" +
            name +
            "\",\"container\":\"c\",\"cpu_request_milli\":2000,\"cpu_limit_milli\":2000,\"memory_limit\":4096}\n";
  }
  const std::string arguments = machine_ + "--plugins.enable=numa --json --explain --workload " + file("w.jsonl", text);
  const Ended first = run(arguments);
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(first.out, run(arguments).out);
  EXPECT_THAT(first.out, Not(HasSubstr("error")));
}

TEST_F(SimulateCommand, KeepsWhatPluginsPrintApartFromItsResults) {
  const std::string workload =
      file("w.jsonl", "{\"op\":\"run_pod\",\"pod\":\"p\"}\n{\"op\":\"create\",\"pod\":\"p\",\"container\":\"c\"}\n");
  const std::string arguments =
      machine_ + "--daemon.plugin-dir=" TOPOLET_BROKEN_DIR " --plugins.enable=forges --workload " + workload;
  for (const char* format : {"--json ", ""}) {
    const Ended ended = run(format + arguments + " 2>/dev/null >" + directory_.file("results") + " && true");
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(directory_.read("results"), AllOf(HasSubstr("placed"), Not(HasSubstr("forged")))) << format;
    EXPECT_THAT(run(format + arguments).out, HasSubstr("forged"));
  }
}

}  // namespace
}  // namespace topolet::simulate
