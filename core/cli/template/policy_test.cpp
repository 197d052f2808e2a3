// Asks the policy as topoletd does, without topoletd.
#include <cstdio>

#include "policy.cpp"

namespace {

std::array<int, 2> g_scores;

int32_t set_score(const topolet_score_sink*, uint32_t candidate, int32_t, int32_t score, topolet_str) {
  g_scores.at(candidate) = score;
  return TOPOLET_OK;
}

int32_t print_error(const topolet_error_sink*, topolet_str message) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(message.len), message.ptr);
  return TOPOLET_OK;
}

bool fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return false;
}

bool test_scores_free_cpus() {
  const topolet_kv option = {TOPOLET_STR("most"), TOPOLET_STR("10")};
  const topolet_create_request create{sizeof(create), 0, nullptr, {&option, 1}, {nullptr, 0}};
  const topolet_error_sink error{sizeof(error), 0, nullptr, &print_error};
  const topolet_instance* instance = nullptr;
  if (topolet_plugin_v1.create(&create, &error, &instance) != TOPOLET_OK) return fail("create failed");
  const auto* score =
      static_cast<const topolet_score*>(instance->get_capability(instance, topolet::sdk::borrow(TOPOLET_SCORE_ID)));
  if (score == nullptr) return fail("it does not score");

  topolet::sdk::Set all;
  topolet::sdk::Set half;
  for (std::uint32_t cpu = 0; cpu < 4; ++cpu) all.insert(cpu);
  for (std::uint32_t cpu = 0; cpu < 2; ++cpu) half.insert(cpu);
  std::array<topolet_candidate, 2> candidates{};
  for (topolet_candidate& candidate : candidates) candidate.cpus = all.view();
  candidates[0].free = half.view();
  candidates[1].free = all.view();
  topolet_request request{};
  request.struct_size = sizeof(request);
  request.candidates = candidates.data();
  request.candidate_count = candidates.size();
  request.candidate_stride = sizeof(topolet_candidate);
  topolet_score_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.set = &set_score;
  const std::int32_t status = score->score(instance, &request, &sink);
  instance->destroy(instance);
  if (status != TOPOLET_OK) return fail("score failed");
  return g_scores[0] == 5 && g_scores[1] == 10 ? true : fail("the scores are wrong");
}

}  // namespace

int main() { return test_scores_free_cpus() ? 0 : 1; }
