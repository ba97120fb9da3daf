#include "parallel/prediction/classes.hpp"

#include <algorithm>
#include <set>

#include "src/base/index.hpp"

namespace chorale {
namespace {

// Assigns the numbers 0, 1, … to distinct values, in the order in which the values first occur.
template <class T>
class Numbers {
 public:
  int of(const T& value) { return known_.try_emplace(value, static_cast<int>(known_.size())).first->second; }

 private:
  std::map<T, int> known_;
};

class Folding {
 public:
  Folding(const std::vector<RankGroup>& groups, const std::vector<int>& scripts, int ranks_per_host, int hosts_per_switch)
      : groups_(groups),
        per_host_(ranks_per_host),
        per_leaf_(
            static_cast<int>(std::min<std::int64_t>(std::int64_t{ranks_per_host} * hosts_per_switch, std::ssize(scripts)))),
        colors_(scripts),
        group_of_(scripts.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const int rank : groups[g].ranks) group_of_[index(rank)].push_back(static_cast<int>(g));
  }

  RankClasses run() {
    for (int before = 0, now = count(); now != before; before = now, now = count()) refine();
    return result();
  }

 private:
  int count() const { return static_cast<int>(std::set(colors_.begin(), colors_.end()).size()); }

  // Groups are of the same kind if they have the same name and if their members, in order, have the same colors. Hosts and
  // leaf switches are of the same kind if their ranks have the same colors.
  std::vector<int> kinds_of_groups() const {
    Numbers<std::pair<std::string, std::vector<int>>> numbers;
    std::vector<int> kinds;
    for (const RankGroup& group : groups_) {
      std::vector<int> members;
      for (const int rank : group.ranks) members.push_back(colors_[index(rank)]);
      kinds.push_back(numbers.of({group.name, members}));
    }
    return kinds;
  }
  // The kinds of consecutive parts of all ranks, each of `size` ranks: hosts, or leaf switches.
  std::vector<int> kinds_of_parts(int size) const {
    Numbers<std::vector<int>> numbers;
    std::vector<int> kinds;
    for (std::size_t first = 0; size > 0 && first < colors_.size(); first += index(size)) {
      const auto last = std::min(first + index(size), colors_.size());
      std::vector<int> ranks(colors_.begin() + static_cast<std::ptrdiff_t>(first),
                             colors_.begin() + static_cast<std::ptrdiff_t>(last));
      std::ranges::sort(ranks);
      kinds.push_back(numbers.of(ranks));
    }
    return kinds;
  }
  int leaf_of(std::size_t rank, const std::vector<int>& leaves) const {
    return per_leaf_ > 0 ? leaves[rank / index(per_leaf_)] : 0;
  }
  void refine() {
    const std::vector<int> groups = kinds_of_groups(), hosts = kinds_of_parts(per_host_), leaves = kinds_of_parts(per_leaf_);
    Numbers<std::vector<int>> numbers;
    std::vector<int> next;
    for (std::size_t rank = 0; rank < colors_.size(); ++rank) {
      std::vector<int> seen{colors_[rank], hosts[rank / index(per_host_)], leaf_of(rank, leaves)};
      for (const int group : group_of_[rank]) seen.push_back(groups[index(group)]);
      std::ranges::sort(seen.begin() + 3, seen.end());
      next.push_back(numbers.of(seen));
    }
    colors_ = std::move(next);
  }

  RankClasses result() const {
    RankClasses all{.class_of = colors_};
    const std::vector<int> kinds = kinds_of_groups(), hosts = kinds_of_parts(per_host_), leaves = kinds_of_parts(per_leaf_);
    all.hosts = hosts.empty() ? 0 : 1 + std::ranges::max(hosts);
    all.leaves = leaves.empty() ? 0 : 1 + std::ranges::max(leaves);
    all.classes.resize(index(count()));
    for (std::size_t rank = colors_.size(); rank-- > 0;) {
      RankClass& one = all.classes[index(colors_[rank])];
      one.rank = static_cast<int>(rank);
      ++one.ranks;
      one.host = hosts[rank / index(per_host_)];
      one.leaf = leaf_of(rank, leaves);
    }
    for (RankClass& one : all.classes)
      for (const int group : group_of_[index(one.rank)])
        one.groups[groups_[index(group)].name] = seen_by(one.rank, group, kinds);
    return all;
  }
  RankClass::Group seen_by(int rank, int group, const std::vector<int>& kinds) const {
    RankClass::Group seen{.instance = index(kinds[index(group)]), .on_host = 0, .senders = 0};
    for (const int member : groups_[index(group)].ranks) seen.members.push_back(colors_[index(member)]);
    const std::set<int> classes(seen.members.begin(), seen.members.end());
    seen.classes.assign(classes.begin(), classes.end());
    std::set<int> alike, beside, under_leaf;
    const auto [first, last] = part_of(rank, per_host_);
    for (int other = first; other < last; ++other) {
      seen.senders += colors_[index(other)] == colors_[index(rank)];
      for (const int theirs : group_of_[index(other)]) {
        if (kinds[index(theirs)] == kinds[index(group)]) alike.insert(theirs);
        if (groups_[index(theirs)].name == groups_[index(group)].name) beside.insert(theirs);
      }
    }
    seen.on_host = static_cast<int>(alike.size());
    seen.beside = static_cast<int>(beside.size());
    if (per_leaf_ == 0) return seen;
    const auto [left, right] = part_of(rank, per_leaf_);
    for (int other = left; other < right; ++other) {
      seen.leaf_senders += colors_[index(other)] == colors_[index(rank)];
      for (const int theirs : group_of_[index(other)])
        if (kinds[index(theirs)] == kinds[index(group)]) under_leaf.insert(theirs);
    }
    seen.under_leaf = static_cast<int>(under_leaf.size());
    return seen;
  }
  // The ranks, from the first to before the last, of the host or leaf switch that has this rank.
  std::pair<int, int> part_of(int rank, int size) const {
    const int first = rank / size * size;
    return {first, std::min<int>(first + size, static_cast<int>(colors_.size()))};
  }

  const std::vector<RankGroup>& groups_;
  int per_host_, per_leaf_;  // number of ranks on a host, and under a leaf switch; 0 if there are no leaf switches
  std::vector<int> colors_;
  std::vector<std::vector<int>> group_of_;  // indexed by rank
};

}  // namespace

RankClasses fold(const std::vector<RankGroup>& groups, const std::vector<int>& scripts, int ranks_per_host,
                 int hosts_per_switch) {
  return Folding(groups, scripts, ranks_per_host, hosts_per_switch).run();
}

}  // namespace chorale
