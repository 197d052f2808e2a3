// Must not compile; the compiler's words are what is tested.
#include <topolet/policy.hpp>

struct Wrong {
  void score(const topolet_request&, topolet::sdk::Scores&) const {}
};

auto* const kCreate = &topolet::sdk::detail::create<Wrong>;
