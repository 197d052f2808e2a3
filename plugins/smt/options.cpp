#include "plugins/smt/options.hpp"

#include <charconv>
#include <string_view>

namespace topolet::smt {

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["isolate-siblings"] == "off") read.isolate_siblings = IsolateSiblings::kOff;
  if (options["isolate-siblings"] == "exclusive") read.isolate_siblings = IsolateSiblings::kExclusive;
  read.pair = options["pair"] == "true";
  read.whole_cores = options.of_other("numa.full-pcpus-only") == "true";
  read.rounds_up = options["round"] != "deny";
  read.spreads_over_cores = options.of_other("numa.distribute-cpus-across-cores") == "true";
  read.places_pods = options.of_other("numa.scope") == "pod";
  const std::string_view min_shared = options.of_other("placement.min-shared-cpus");
  std::from_chars(min_shared.data(), min_shared.data() + min_shared.size(), read.min_shared_cpus);
  return read;
}

}  // namespace topolet::smt
