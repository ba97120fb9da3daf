#include "experiments/common/hosts_option.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace chorale {

void HostsOption::declare(Options& options, const std::string& about) {
  options_ = &options;
  options.add("hosts", text_, about).words("N,N,…");
}

void HostsOption::resolve(std::int64_t& ranks) {
  if (!given()) return;
  const bool counted = options_->find("ranks")->source != Source::other;
  topology_ = Topology::parse(text_, counted ? static_cast<int>(ranks) : 0);
  ranks = std::ssize(topology_.host_of);
  if (ranks > most_ranks_shown)
    usage_error("the hosts have too many ranks", fmt::format("--hosts {}: {} ranks", text_, ranks),
                fmt::format("give hosts with at most {} ranks together", most_ranks_shown));
}

}  // namespace chorale
