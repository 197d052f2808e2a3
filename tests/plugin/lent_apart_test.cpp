// Memory that plugins are lent, where one of them writes to it behind another's back, or takes it away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/mman.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/run_in_child.hpp"
#include "core/plugin/guard/crash_mark.hpp"
#include "tests/plugin/plugins.hpp"
#include "tests/plugin/scripted.hpp"

namespace topolet::plugin {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// As a plugin does it that knows no const.
void scribble_on(const std::uint64_t* words) { const_cast<std::uint64_t*>(words)[0] ^= 0xffU; }

/// Puts a page of its own, with the same bytes, in the place of the one that it is lent: that one nobody can write to.
void put_own_page_in_place_of(const std::uint64_t* lent) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  auto* page = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(lent) / 4096 * 4096);  // NOLINT
  const std::vector<unsigned char> bytes(page, page + 4096);
  EXPECT_NE(::mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(::mmap(page, 4096, PROT_READ | PROT_WRITE, kFlags, -1, 0), page);
  std::copy(bytes.begin(), bytes.end(), page);
}

std::int32_t say(const topolet_score_sink& sink, const std::string& reason) {
  return sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, view_of(reason));
}

/// Says which CPUs it is shown as those of the pool, and as those that are allowed.
Scripted reads(const std::string& name) {
  return scripted_on(name, [](const topolet_request& request, const topolet_score_sink& sink) {
    return say(sink, std::to_string(request.ledger->pool.words[0]) + " of " +
                         std::to_string(request.topology->allowed.words[0]));
  });
}

/// One daemon's plugin thread, with all that it logs.
struct Host {
  std::ostringstream lines;
  std::int64_t now_ms = 0;
  PolicyThread thread{
      {.deadline = milliseconds(60'000),
       .decision_time = milliseconds(600'000),
       .clock = {.steady = [this] { return std::chrono::steady_clock::time_point(milliseconds(now_ms)); }},
       .log = std::make_shared<Log>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines))}};
  std::shared_ptr<const placement::PolicyRequest> request = two_node_request();

  Answers ask(const std::vector<Scripted>& plugins) {
    std::vector<PluginVote> votes;
    for (const Scripted& plugin : plugins) votes.push_back(vote(plugin));
    return thread.run_as<Answers>(in_this_order(votes), ask_all(request));
  }
  PluginStatistics state_of(const std::string& name) const {
    for (const PluginStatistics& state : thread.states()) {
      if (state.name == name) return state;
    }
    return {};
  }
  void tick() {
    thread.tick({}, [] { return std::make_shared<const TickSnapshot>(); });
  }
};

class LentApart : public ::testing::Test {
 protected:
  /// Keeps the address of what it is shown.
  Scripted culprit() {
    return scripted_on("culprit", [this](const topolet_request& request, const topolet_score_sink& sink) {
      kept_ = request.ledger->pool.words;
      return say(sink, "culprit");
    });
  }
  /// While it is asked, a thread of the culprit writes to what that was shown.
  Scripted victim() {
    return scripted_on("victim", [this](const topolet_request& request, const topolet_score_sink& sink) {
      scribble_on(kept_);
      return say(sink, std::to_string(request.ledger->pool.words[0]));
    });
  }

  Host host_;
  const std::uint64_t* kept_ = nullptr;
};

TEST_F(LentApart, CostsNobodyAVoteWhoIsAskedWhileAThreadOfAnotherWrites) {
  EXPECT_THAT(host_.ask({culprit(), victim(), reads("after")}), ElementsAre("culprit", "255", "255 of 255"));
  EXPECT_EQ(host_.state_of("victim").lost.total(), 0U);
  EXPECT_EQ(host_.state_of("culprit").lost.total(), 0U) << "nobody knows yet";
  EXPECT_THAT(host_.lines.str(),
              HasSubstr("what plugins are lent to read was written to while score of plugin victim was running"));
}

TEST_F(LentApart, NamesTheOneWhoseThreadWritesFromThenOn) {
  for (int i = 0; i < 7; ++i) EXPECT_EQ(host_.ask({culprit(), victim(), reads("after")})[1], "255");
  EXPECT_EQ(host_.state_of("victim").lost.total(), 0U);
  EXPECT_EQ(host_.state_of("after").lost.total(), 0U);
  EXPECT_THAT(host_.state_of("culprit").quarantine,
              HasSubstr("failed 3 times in 10 minutes, last: culprit: was not asked to score: it wrote to memory that "
                        "it was lent to read when its earlier call had returned"));
}

TEST_F(LentApart, StillBlamesTheOneThatWritesWhenItIsAsked) {
  const Scripted writes = scripted_on("writes", [](const topolet_request& request, const topolet_score_sink& sink) {
    scribble_on(request.ledger->pool.words);
    return say(sink, "mine");
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(host_.ask({writes, reads("after")}),
                ElementsAre("writes: score wrote to memory that it was lent to read (the ledger)", "255 of 255"));
  }
  EXPECT_THAT(host_.state_of("writes").quarantine, HasSubstr("failed 3 times"));
}

TEST_F(LentApart, FindsATopologyThatWasChangedBetweenDecisionsAndThenNamesWhoDoesIt) {
  const Scripted writes = scripted_on("writes", [](const topolet_request& request, const topolet_score_sink& sink) {
    put_own_page_in_place_of(request.topology->allowed.words);
    scribble_on(request.topology->allowed.words);
    return say(sink, "mine");
  });
  EXPECT_EQ(host_.ask({writes})[0], "mine");
  host_.tick();
  EXPECT_THAT(host_.lines.str(), HasSubstr("the topology that plugins are lent was changed"));
  EXPECT_THAT(
      host_.ask({reads("before"), writes, reads("after")}),
      ElementsAre("255 of 255", "writes: score wrote to memory that it was lent to read (the topology)", "255 of 255"));
}

TEST_F(LentApart, LooksAtTheTopologyNowAndThenOnly) {
  EXPECT_THAT(host_.ask({reads("a")}), ElementsAre("255 of 255"));
  host_.tick();
  const Scripted writes = scripted_on("writes", [](const topolet_request& request, const topolet_score_sink& sink) {
    put_own_page_in_place_of(request.topology->allowed.words);
    scribble_on(request.topology->allowed.words);
    return say(sink, "mine");
  });
  host_.ask({writes});
  host_.now_ms = 9'999;
  host_.tick();
  EXPECT_THAT(host_.lines.str(), IsEmpty());
  host_.now_ms = 10'000;
  host_.tick();
  EXPECT_THAT(host_.lines.str(), HasSubstr("the topology that plugins are lent was changed"));
}

/// An act of a plugin on the pages at an address.
using Deed = int (*)(void* page, std::size_t bytes);
constexpr Deed kUnmaps = &::munmap;
constexpr Deed kHides = [](void* page, std::size_t bytes) { return ::mprotect(page, bytes, PROT_NONE); };
constexpr Deed kReplaces = [](void* page, std::size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return ::mmap(page, bytes, PROT_NONE, kFlags, -1, 0) == page ? 0 : 1;
};

/// In a process of its own, two decisions with a plugin that does so to where `address_in` says, and what was said.
ChildEnd decide_beside(Deed deed, std::function<const void*(const topolet_request&)> address_in) {
  return run_in_child(std::chrono::minutes(1), [=](const Progress&) {
    record_crashes_to(-1);
    Host host;
    const Scripted takes = scripted_on("takes", [=](const topolet_request& request, const topolet_score_sink& sink) {
      const auto page = reinterpret_cast<std::uintptr_t>(address_in(request)) / 4096 * 4096;  // NOLINT
      say(sink, "mine");
      return deed(reinterpret_cast<void*>(page), 4096) == 0 ? TOPOLET_OK : TOPOLET_FAILED;  // NOLINT
    });
    std::string said;
    for (int i = 0; i < 2; ++i) {
      for (const std::string& answer : host.ask({takes, reads("after")})) said += answer + "; ";
    }
    return said;
  });
}

class LentMemoryThatIsTaken : public ::testing::TestWithParam<Deed> {};

TEST_P(LentMemoryThatIsTaken, NamesThePluginAndCostsNobodyElseAVote) {
  const auto expected = [](const std::string& what) {
    const std::string once =
        "takes: score wrote to memory that it was lent to read (" + what + ", unmapped or protected); 255 of 255; ";
    return once + once;
  };
  const ChildEnd of_ledger = decide_beside(GetParam(), [](const auto& request) { return request.ledger->pool.words; });
  EXPECT_EQ(of_ledger.kind, ChildEnd::Kind::kReturned) << of_ledger.text;
  EXPECT_EQ(of_ledger.text, expected("the ledger"));
  const ChildEnd of_workload = decide_beside(GetParam(), [](const auto& request) { return request.workload; });
  EXPECT_EQ(of_workload.kind, ChildEnd::Kind::kReturned) << of_workload.text;
  EXPECT_EQ(of_workload.text, expected("the workload and the candidates"));
}

/// Does so to the arguments of its first notify(), its calls after that nothing.
struct TakesArguments {
  Deed deed;
  bool has_done_it = false;
  topolet_instance instance{};

  static std::int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink*) {
    auto& self = *static_cast<TakesArguments*>(instance->context);
    const auto page = reinterpret_cast<std::uintptr_t>(event) / 4096 * 4096;  // NOLINT
    if (std::exchange(self.has_done_it, true)) return event->sequence == 2 ? TOPOLET_OK : 43;
    return self.deed(reinterpret_cast<void*>(page), 4096) == 0 ? TOPOLET_OK : TOPOLET_FAILED;  // NOLINT
  }
  static const void* get_capability(const topolet_instance*, topolet_str id) {
    static const topolet_events kEvents = {sizeof(topolet_events), 0, &notify};
    return topolet_str_is(id, TOPOLET_EVENTS_ID) ? &kEvents : nullptr;
  }
};

TEST_P(LentMemoryThatIsTaken, CostsThePluginThisEventOnlyIfItIsThatOfArguments) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [](const Progress&) {
    record_crashes_to(-1);
    TakesArguments takes{GetParam()};
    takes.instance = {sizeof(takes.instance), 0, &takes, &TakesArguments::get_capability,
                      [](const topolet_instance*) {}};
    const auto policy =
        PluginPolicy::wrap("takes", std::make_unique<PluginHost>("takes", make_silent_log(), nullptr), &takes.instance)
            .value();
    std::string said;
    for (const std::uint64_t sequence : {1, 2}) {
      ContainerEvent container_event;
      container_event.kind = ContainerEvent::Kind::kStarted;
      container_event.topology = two_node_request()->topology;
      container_event.sequence = sequence;
      const auto told = policy->notify(container_event, AbiTopology(container_event.topology));
      said += told ? "told; " : told.error().message + "; ";
    }
    return said;
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kReturned) << end.text;
  EXPECT_EQ(
      end.text,
      "takes: notify wrote to memory that it was lent to read (the arguments of the call, unmapped or protected); "
      "told; ");
}

INSTANTIATE_TEST_SUITE_P(All, LentMemoryThatIsTaken, ::testing::Values(kUnmaps, kHides, kReplaces));

}  // namespace
}  // namespace topolet::plugin
