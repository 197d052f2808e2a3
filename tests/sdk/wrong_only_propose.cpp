// Must not compile; the compiler's words are what is tested.
#include <topolet/policy.hpp>

struct Wrong {
  explicit Wrong(const topolet::sdk::Options&) {}
  void propose(const topolet_request&, topolet::sdk::Proposals&) const {}
};

auto* const kCreate = &topolet::sdk::detail::create<Wrong>;
