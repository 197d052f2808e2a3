#include "tests/fuzz/fuzzer.hpp"
#include "tests/fuzz/nri_properties.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  topolet::abort_on_violation(topolet::judge_nri(std::string(data, data + size)));
  return 0;
}
