// Prefers candidates with many free CPUs. Change score() to what you want.
#include <topolet/policy.hpp>

namespace {

using namespace topolet::sdk;

class Policy___CLASS__ {
 public:
  // The topolet.io annotations that it reads, without that prefix; in score(), find_value(request.workload->settings,
  // "NAME") is what one of them says.
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  explicit Policy___CLASS__(const Options& options) : most_(std::stoi(std::string(options["most"]))) {}

  void score(const topolet_request& request, Scores& scores) const {
    std::size_t position = 0;
    for (const topolet_candidate& candidate : candidates(request)) {
      const auto free = static_cast<int>(size_of(candidate.usable));
      const auto all = static_cast<int>(size_of(candidate.cpus));
      scores.score(position++, all == 0 ? 0 : most_ * free / all, std::to_string(free) + " CPUs are free");
    }
  }

 private:
  int most_;
};

constexpr std::array<topolet_option, 1> kOptions = {{
    {TOPOLET_STR("most"), TOPOLET_OPTION_INTEGER, 0, TOPOLET_STR("10"), {}, 1, 100, TOPOLET_STR("The highest score.")},
}};

}  // namespace

TOPOLET_PLUGIN(Policy___CLASS__, "__NAME__", "0.1", kOptions);
