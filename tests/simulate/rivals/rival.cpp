// Wants every other CPU, in its own order, and its own name in the environment and the annotations of each container.
// Built several times, each time by another id (TOPOLET_RIVAL), of which one half wants the even CPUs.
#include <topolet/policy.hpp>

#include <string_view>
#include <vector>

namespace {

using namespace topolet::sdk;

constexpr std::string_view kId = TOPOLET_RIVAL;
constexpr std::uint32_t kOdd = kId.back() % 2;

class Rival {
 public:
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  explicit Rival(const Options& /*options*/) {}

  void score(const topolet_request& request, Scores& scores) const {
    for (std::size_t i = 0; i < candidates(request).size(); ++i) scores.score(i, i % 2 == kOdd ? 3 : 1, "a whim");
  }

  void pick(const topolet_pick_request& picking, Picks& picks) const {
    std::vector<std::uint64_t> own(picking.usable.count);
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = picking.usable.words[i] & (kOdd != 0 ? 0xaaaaaaaaaaaaaaaaU : 0x5555555555555555U);
      for (std::uint32_t bit = 64; bit > 0; --bit) {
        if (((own[i] >> (bit - 1)) & 1U) != 0) order.push_back(static_cast<std::uint32_t>(64 * i) + bit - 1);
      }
    }
    if (order.empty()) return;
    while (!own.empty() && own.back() == 0) own.pop_back();
    picks.narrow({own.data(), own.size()});
    picks.order(order);
  }

  void adjust(const topolet_adjust_request& /*adjusting*/, Adjustments& adjustments) const {
    adjustments.env("RIVAL", kId);
    adjustments.annotation("example.com/rival", kId);
    adjustments.reason("it is there");
  }
};

constexpr std::array<topolet_option, 0> kOptions = {};

}  // namespace

TOPOLET_PLUGIN(Rival, TOPOLET_RIVAL, "1", kOptions);
