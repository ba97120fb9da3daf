#include "parallel/state/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "parallel/state/fingerprint.hpp"
#include "parallel/state/resume.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

using Ranks = std::vector<std::int64_t>;

// Describes a tensor in a line such as "block.0.mlp.up.weight|1 0 48|0 96|0 0 0xabc…". The line consists of the tensor's
// name, its part, some coordinates of the rank, and a hash after the last blank. The coordinates are equal on all ranks that
// sum gradients in the same group.
//
// In fast numerics, each tensor-parallel rank and each stage sums gradients in a separate group. Groups whose ranks are
// placed differently on hosts can use different algorithms. Copies in different groups can then be rounded differently.
std::string line_of(const StateTensor& t, const Training& training) {
  const Part part = resolved(t.part, t.shape);
  const bool exact = training.options().numerics == NumericsKind::exact;
  const Mesh& mesh = training.mesh();
  return fmt::format("{}|{} {} {}|{} {}|{} {} {:#x}\n", t.name, part.shard.dim, part.shard.first, part.shard.length,
                     part.first, part.count, exact ? 0 : mesh.tensor().rank(), exact ? 0 : mesh.pipeline().rank(),
                     hash_of(t));
}

// Collective. Returns this rank's weights and moments of which at least one rank holds a copy. Tensors without copies are
// not read, because they can be in a slow tier.
std::vector<StateTensor> copied_state(Training& training) {
  std::vector<StateTensor> state = state_of(training);
  std::string mine;
  for (const StateTensor& t : state)
    if (!t.copy.empty()) mine += t.name + "\n";
  std::set<std::string> copied;
  for (const std::string& names : training.mesh().world().exchange(mine))
    for (std::string& name : split(names, '\n')) copied.insert(std::move(name));
  std::erase_if(state, [&](const StateTensor& t) { return !copied.contains(t.name); });
  return state;
}

// Returns the values that layers use, on ranks that have full values. These values can differ from the optimizer's weights,
// which can be only a shard, or master weights of a different type.
std::vector<StateTensor> values_of(const Training& training) {
  std::vector<StateTensor> values;
  if (training.mesh().layout().zero == 3) return values;
  for (const ParameterPointer& p : training.parameters())
    if (p->value) values.push_back({"value of " + p->name, p->shape, {.shard = p->shard}, p->value.slice()});
  return values;
}

// Returns text such as "rank 2 differs from ranks 0, 1, 3", or "ranks 0, 1 differ" if no hash is in the majority.
std::string in_words(const std::map<std::string, Ranks>& ranks_by_hash) {
  const auto most = std::ranges::max_element(ranks_by_hash, {}, [](const auto& entry) { return entry.second.size(); });
  Ranks others;
  for (const auto& [hash, ranks] : ranks_by_hash)
    if (hash != most->first) others.insert(others.end(), ranks.begin(), ranks.end());
  std::ranges::sort(others);
  const auto words = [](const Ranks& ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  };
  if (most->second.size() > others.size())
    return fmt::format("{} differ{} from {}", words(others), others.size() == 1 ? "s" : "", words(most->second));
  others.insert(others.end(), most->second.begin(), most->second.end());
  std::ranges::sort(others);
  return fmt::format("{} differ; none is in the majority", words(others));
}

}  // namespace

void require_equal_replicas(Training& training) {
  std::string mine;
  for (const StateTensor& tensor : copied_state(training)) mine += line_of(tensor, training);
  for (const StateTensor& tensor : values_of(training)) mine += line_of(tensor, training);
  std::map<std::string, std::map<std::string, Ranks>> copies;  // outer key: tensor and part; inner key: hash
  const std::vector<std::string> all = training.mesh().world().exchange(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (const std::string& line : split(all[rank], '\n'))
      if (const auto blank = line.rfind(' '); blank != std::string::npos)
        copies[line.substr(0, blank)][line.substr(blank + 1)].push_back(static_cast<std::int64_t>(rank));
  std::vector<std::string> differ;
  std::string first;
  for (const auto& [part, ranks_by_hash] : copies) {
    if (ranks_by_hash.size() == 1) continue;
    if (differ.empty()) first = in_words(ranks_by_hash);
    differ.push_back(part.substr(0, part.find('|')));
  }
  if (differ.empty()) return;
  throw Error(
      Exit::runtime, fmt::format("after step {}, replicas of {} differ", training.steps(), differ[0]),
      fmt::format("{}; {} of {} parts of tensors differ", first, differ.size(), copies.size()),
      "a bit may have flipped in memory: load an earlier checkpoint and replace the host. --algorithm native may also "
      "round differently on each rank");
}

}  // namespace chorale
