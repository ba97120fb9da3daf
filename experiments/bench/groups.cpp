#include "experiments/bench/groups.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {
namespace {

std::string words_for(const std::vector<int>& ranks, int hosts) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return fmt::format("ranks {} are on {} host{}", join(numbers, ","), hosts, hosts == 1 ? "" : "s");
}

}  // namespace

SideBySide Groups::among(int ranks, const std::vector<int>& hosts) const {
  SideBySide all{.groups = std::vector<std::vector<int>>(index(number)), .hosts = hosts};
  for (int rank = 0; rank < ranks; ++rank) all.groups[index(of(rank, ranks))].push_back(rank);
  return all;
}

void Groups::require_equal(int ranks, const std::vector<int>& hosts) const {
  if (ranks % number != 0)
    usage_error("the ranks cannot be divided into equal groups", fmt::format("--groups {}: {} ranks", number, ranks),
                fmt::format("take a divisor of {}, or start a multiple of {} ranks", ranks, number));
  const SideBySide all = among(ranks, hosts);
  const std::vector<int>& first = all.groups[0];
  const std::vector<int> usual = hosts_among(first, hosts);
  for (const std::vector<int>& group : all.groups)
    if (const std::vector<int> own = hosts_among(group, hosts); own != usual)
      usage_error("the groups are spread over the hosts in different ways",
                  words_for(first, number_of_hosts(usual)) + "; " + words_for(group, number_of_hosts(own)),
                  fmt::format("take another number of groups, or {}", strided ? "leave out --strided" : "add --strided"));
}

}  // namespace chorale::bench
