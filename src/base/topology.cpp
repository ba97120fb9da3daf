#include "src/base/topology.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns a string that identifies this host. The first line of the string is the host's name. The string also differs
// between hosts of the same name, and between containers on one host.
std::string identity() {
  char target[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", target, sizeof target - 1);
  return fmt::format("{}\n{}\n{}", host_name(), kernel_id(),
                     length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "");
}

Topology numbered(const std::vector<std::string>& identities, const std::vector<std::string>& names) {
  Topology topology;
  std::vector<std::string> seen;
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    const auto found = std::find(seen.begin(), seen.end(), identities[rank]);
    topology.host_of.push_back(static_cast<int>(found - seen.begin()));
    if (found != seen.end()) continue;
    seen.push_back(identities[rank]);
    topology.names.push_back(names[rank]);
  }
  return topology;
}

}  // namespace

Topology Topology::of_one_host(int ranks) { return {std::vector<int>(static_cast<std::size_t>(ranks)), {host_name()}}; }

Topology Topology::of_counts(const std::vector<int>& ranks_of_each) {
  Topology topology;
  for (const int ranks : ranks_of_each) {
    topology.host_of.insert(topology.host_of.end(), static_cast<std::size_t>(ranks), topology.hosts());
    topology.names.push_back(fmt::format("n{}", topology.hosts()));
  }
  return topology;
}

Topology Topology::parse(const std::string& counts, int ranks) {
  std::vector<int> ranks_of_each;
  std::int64_t sum = 0;
  for (const std::string& word : counts.empty() ? std::vector<std::string>{""} : split(counts, ',')) {
    int count = 0;
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, count);
    if (read.ec != std::errc() || read.ptr != end || count < 1 || count > 1'000'000)
      usage_error("hosts are given by the number of ranks on each", fmt::format("\"{}\" in --hosts {}", word, counts),
                  "such as --hosts 2,3,1");
    ranks_of_each.push_back(count);
    sum += count;
  }
  if (ranks > 0 && sum != ranks)
    usage_error("the hosts have another number of ranks",
                fmt::format("--hosts {}: {} ranks; there are {}", counts, sum, ranks),
                fmt::format("give numbers whose sum is {}", ranks));
  return of_counts(ranks_of_each);
}

std::vector<int> Topology::ranks_on(int host) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < host_of.size(); ++rank)
    if (host_of[rank] == host) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

bool Topology::together(std::span<const int> ranks) const {
  return std::ranges::all_of(ranks, [&](int rank) {
    return host_of.at(static_cast<std::size_t>(rank)) == host_of.at(static_cast<std::size_t>(ranks.front()));
  });
}

Topology Topology::part(std::span<const int> ranks) const {
  std::vector<std::string> identities, their_names;
  for (const int rank : ranks) {
    const int host = host_of.at(static_cast<std::size_t>(rank));
    identities.push_back(std::to_string(host));
    their_names.push_back(names.at(static_cast<std::size_t>(host)));
  }
  return numbered(identities, their_names);
}

std::string Topology::text() const {
  std::string words;
  for (int host = 0; host < hosts(); ++host)
    words += fmt::format("{}{}: {}", host ? ", " : "", names[static_cast<std::size_t>(host)], cpu_ranges(ranks_on(host)));
  return words;
}

Topology topology_of(const mpi::Runtime& runtime) {
  const std::string all = join(mpi::gather(runtime.world(), identity()), {"\0", 1});
  const std::vector<std::string> identities = split(mpi::broadcast(runtime.world(), all), '\0');
  std::vector<std::string> names;
  for (const std::string& each : identities) names.push_back(each.substr(0, each.find('\n')));
  return numbered(identities, names);
}

}  // namespace chorale
