// Must not compile; the compiler's words are what is tested.
#include <topolet/policy.hpp>

struct Wrong {
  static constexpr std::array<topolet_str, 0> kAnnotations = {};
  explicit Wrong(const topolet::sdk::Options&) {}
};

auto* const kCreate = &topolet::sdk::detail::create<Wrong>;
