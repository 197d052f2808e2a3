// Must not compile; the compiler's words are what is tested.
#include <topolet/policy.hpp>

struct Wrong {
  static constexpr const char* kAnnotations = "mood";
  explicit Wrong(const topolet::sdk::Options&) {}
  void notify(const topolet_event&) const {}
};

auto* const kCreate = &topolet::sdk::detail::create<Wrong>;
