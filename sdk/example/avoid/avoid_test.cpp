// Asks the policy as topoletd does, without topoletd, on a machine that is made up.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <topolet/testing.hpp>

using namespace topolet::sdk::testing;

namespace {

int g_failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++g_failures;
}

/// A file in a directory of its own.
class ListFile {
 public:
  explicit ListFile(const std::string& list) {
    std::string pattern = (std::filesystem::temp_directory_path() / "avoid-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    write(list);
  }
  ~ListFile() { std::filesystem::remove_all(directory_); }
  void write(const std::string& list) const { std::ofstream(path()) << list << '\n'; }
  void remove() const { std::filesystem::remove(path()); }
  std::string path() const { return (directory_ / "cpus").string(); }

 private:
  std::filesystem::path directory_;
};

const Container kContainer = {.pod_uid = "1", .cpu_request_milli = 2000};

void test_keeps_off_the_listed_cpus() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const Request request(machine, ledger, kContainer, 2);
  const ListFile file("0-2");
  FakeHost host;
  Plugin avoid(topolet_plugin_v1, host, {{"file", file.path()}});
  expect(host.state.at("cpus") == "0-2", "what is listed is saved: decisions depend on nothing else");
  const std::vector<Verdict> verdicts = avoid.score(request);
  expect(verdicts.at(0).score == TOPOLET_SCORE_MIN && verdicts.at(0).code == "too-few-others",
         "node 0 has one CPU left");
  expect(verdicts.at(1).kind == TOPOLET_VERDICT_ABSTAIN, "of node 1 it says nothing");
  const Picked picked = avoid.pick(request, request.position(set_of({0, 1})));
  expect(picked.narrow == set_of({3, 4, 5, 6, 7}), "the others are left");
  expect(picked.reason == "keeps off CPUs 0-2", "the reason names them");
}

void test_wakes_the_host_when_the_list_changes() {
  const Machine machine("numa:2 core:4 pu:1");
  Ledger ledger(machine);
  ledger.place_exclusive({.pod_uid = "1"}, set_of({0, 1}));
  ledger.place_shared({.pod_uid = "2"}, set_of({4, 5}));
  const ListFile file("");
  FakeHost host;
  Plugin avoid(topolet_plugin_v1, host, {{"file", file.path()}});
  expect(avoid.tick(machine, ledger, 0).empty(), "nothing has changed yet");
  file.write("1");
  expect(host.wait_for_wanted_ticks(1), "a change is noticed");
  const std::vector<Wish> wishes = avoid.tick(machine, ledger, 0);
  expect(wishes.size() == 1 && wishes.at(0).entry == 0, "whoever is there is to leave");
  expect(avoid.tick(machine, ledger, 0).empty(), "and is asked to once");
  const std::size_t wanted = host.wanted_ticks();
  file.remove();
  expect(host.wait_for_wanted_ticks(wanted + 1), "so is the end of the file");
  expect(avoid.tick(machine, ledger, 0).empty() && host.state.at("cpus").empty(), "then there are none to avoid");
}

void test_keeps_what_was_listed_when_the_file_is_damaged() {
  const Machine machine("numa:2 core:4 pu:1");
  const Ledger ledger(machine);
  const ListFile file("3");
  FakeHost host;
  Plugin avoid(topolet_plugin_v1, host, {{"file", file.path()}});
  file.write("three");
  expect(avoid.tick(machine, ledger, 0).empty() && host.state.at("cpus") == "3", "it counts as before");
  expect(host.log.size() == 1, "and the log says so");
}

}  // namespace

int main() {
  try {
    test_keeps_off_the_listed_cpus();
    test_wakes_the_host_when_the_list_changes();
    test_keeps_what_was_listed_when_the_file_is_damaged();
  } catch (const std::exception& exception) {
    expect(false, exception.what());
  }
  return g_failures == 0 ? 0 : 1;
}
