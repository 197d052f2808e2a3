// Must not compile; the compiler's words are what is tested.
#include <topolet/policy.hpp>

class Wrong {
 public:
  explicit Wrong(const topolet::sdk::Options&) {}
  void notify(const topolet_event&) const {}

 private:
  void score(const topolet_request&, topolet::sdk::Scores&) const {}
};

auto* const kCreate = &topolet::sdk::detail::create<Wrong>;
