#include "parallel/state/buddies.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace chorale {

std::string name_of_part(const StateTensor& tensor) {
  const Part part = resolved(tensor.part, tensor.shape);
  const Shard& shard = part.shard;
  return fmt::format("{}[{},{},{},{},{}]", tensor.name, shard.dim, shard.first, shard.length, part.first, part.count);
}

std::vector<HeldPart> held_parts(const std::vector<StateTensor>& state) {
  std::vector<HeldPart> parts;
  for (const StateTensor& tensor : state) parts.push_back({name_of_part(tensor), tensor.data.bytes(), tensor.copy.empty()});
  return parts;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HeldPart, name, bytes, saved)

std::string text_of(const std::vector<HeldPart>& parts) { return nlohmann::json(parts).dump(); }
std::vector<HeldPart> held_parts_in(const std::string& text) { return nlohmann::json::parse(text); }

std::vector<int> buddies_of(const std::vector<int>& hosts, const std::vector<std::vector<HeldPart>>& parts) {
  const std::set<int> all_hosts(hosts.begin(), hosts.end());
  const auto size = static_cast<int>(hosts.size()), host_count = static_cast<int>(all_hosts.size());
  const auto host_of = [&](int rank) { return hosts[static_cast<std::size_t>(rank)]; };
  const auto place_of = [&](int host) { return static_cast<int>(std::distance(all_hosts.begin(), all_hosts.find(host))); };
  std::map<std::string, std::vector<int>> holders;
  for (int rank = 0; rank < size; ++rank)
    for (const HeldPart& part : parts[static_cast<std::size_t>(rank)]) holders[part.name].push_back(rank);
  std::vector<int> buddies(hosts.size(), -1);
  std::vector<std::int64_t> load(hosts.size());  // the bytes of which each rank is buddy
  for (int rank = 0; host_count > 1 && rank < size; ++rank) {
    std::vector<std::int64_t> held(hosts.size());
    std::int64_t bytes = 0;
    for (const HeldPart& part : parts[static_cast<std::size_t>(rank)]) {
      if (!part.saved) continue;
      bytes += part.bytes;
      for (const int other : holders[part.name]) held[static_cast<std::size_t>(other)] += part.bytes;
    }
    const auto worth = [&](int other) {  // the smallest is best
      const int away = (place_of(host_of(other)) - place_of(host_of(rank)) + host_count) % host_count;
      return std::tuple(-held[static_cast<std::size_t>(other)], away, load[static_cast<std::size_t>(other)], other);
    };
    int& buddy = buddies[static_cast<std::size_t>(rank)];
    for (int other = 0; other < size; ++other)
      if (host_of(other) != host_of(rank) && (buddy < 0 || worth(other) < worth(buddy))) buddy = other;
    load[static_cast<std::size_t>(buddy)] += bytes;
  }
  return buddies;
}

}  // namespace chorale
