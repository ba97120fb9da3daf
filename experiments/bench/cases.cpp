#include "experiments/bench/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <chorale/algorithm.hpp>
#include "collectives/choice/decision.hpp"
#include "experiments/bench/values.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/parse_number.hpp"
#include "experiments/common/random_order.hpp"
#include "src/base/error.hpp"
#include "src/base/flag_synonyms.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {
namespace {

using Words = std::vector<std::string>;

template <std::size_t size>
Words words(const char* const (&names)[size]) {
  return Words(std::begin(names), std::end(names));
}

Words algorithms_of(Collective what) {
  Words names;
  for (const Algorithm& algorithm : all_algorithms())
    if (algorithm.what == what) names.emplace_back(algorithm.name);
  return names;
}

// Returns `all` if the list `wanted` contains the entry "all"; otherwise returns `wanted`.
Words expanded(const Words& wanted, const Words& all) {
  return std::count(wanted.begin(), wanted.end(), "all") ? all : wanted;
}

template <class Enum>
std::vector<Enum> values(const Words& wanted, const Words& names) {
  std::vector<Enum> found;
  for (const std::string& word : expanded(wanted, names))
    found.push_back(static_cast<Enum>(std::find(names.begin(), names.end(), word) - names.begin()));
  return found;
}

// The error message suggests the values in `offered`, a subset of `known`.
void require_known(const char* kind, const Words& wanted, const Words& known, Words offered) {
  offered.emplace_back("all");
  for (const std::string& word : wanted) {
    if (word == "all" || std::count(known.begin(), known.end(), word)) continue;
    const std::string near = familiar_value(word, offered);
    const Words algorithms = algorithm_names();
    const bool misplaced = std::string_view(kind) == "operation" && std::ranges::count(algorithms, word) > 0;
    usage_error(fmt::format("unknown {} \"{}\"", kind, word), "there are " + join(offered, ", "),
                misplaced      ? fmt::format("did you mean --algorithm {}?", word)
                : near.empty() ? "choose some of these"
                               : fmt::format("did you mean \"{}\"?", near));
  }
}

void require_known(const char* kind, const Words& wanted, const Words& known) { require_known(kind, wanted, known, known); }

int number(const char* kind, const std::string& text, int lowest) {
  const auto value = parse_integer<int>(text);
  if (!value || *value < lowest)
    usage_error(fmt::format("invalid {}", kind), fmt::format("{} = {} (command line)", kind, text),
                fmt::format("{} takes whole numbers from {}", kind, lowest));
  return *value;
}

std::vector<int> roots(const Words& wanted, int ranks) {
  Words all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::to_string(r));
  std::vector<int> found;
  for (const std::string& word : expanded(wanted, all)) found.push_back(number("root", word, 0));
  return found;
}

bool exists(Collective what, bool in_place) {
  if (what == Collective::broadcast) return in_place;  // a broadcast has one buffer
  const bool only_root_has_both = what == Collective::gather || what == Collective::scatter;
  return !in_place || !(only_root_has_both || what == Collective::barrier);
}

// Returns "" if the row can run, otherwise the reason. The row is checked with one element per rank, because sizes are
// chosen later.
std::string why_not(const BenchCase& row, const BenchWorld& stage) {
  if (has_root(row.what) && row.root >= row.ranks) return fmt::format("root {} is not one of {} ranks", row.root, row.ranks);
  if (stage.sums && reduces(row.what) && row.ranks > most_ranks_summed)
    return fmt::format("sums over more than {} ranks are not exact in every type", most_ranks_summed);
  if (row.algorithm == "auto") return "";
  if (row.algorithm == "native")
    return stage.has_native[static_cast<std::size_t>(row.what)] ? "" : stage.backend + " has no native " + name_of(row.what);
  const Algorithm* algorithm = find_algorithm(row.what, row.algorithm);
  if (!algorithm) return "there is no such algorithm";
  if (!fits(*algorithm, row.problem()))
    return fmt::format("does not fit {} ranks{}", row.ranks, row.in_place ? " in place" : "");
  return "";
}

}  // namespace

Words dtype_names() {
  return each(all_dtypes, [](DType dtype) { return std::string(name_of(dtype)); });
}

Problem BenchCase::problem() const { return Problem::even(what, count, ranks, root, in_place, hosts); }

double BenchCase::bus_factor() const {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (what) {
    case Collective::all_reduce: return 2 * others;
    case Collective::broadcast:
    case Collective::reduce: return 1;
    case Collective::barrier: return 0;
    default: return others;
  }
}

void refuse_unknown(const WantedCases& wanted) {
  const Words collectives = words(collective_names);
  require_known("operation", wanted.ops, collectives);
  require_known("algorithm", wanted.algorithms, algorithm_names(),
                algorithm_names(values<Collective>(wanted.ops, collectives)));
  require_known("type", wanted.dtypes, dtype_names());
  for (const std::string& word : wanted.redops)
    if (std::ranges::count(collectives, word))
      usage_error(fmt::format("{} is an operation, and op names operators, such as sum", word),
                  "op = " + join(wanted.redops, ","),
                  fmt::format("name it without --op; in a suite: operations = \"{}\"", word));
  require_known("operator", wanted.redops, words(redop_names));
  roots(wanted.roots, 1);
  for (const std::string& word : wanted.chunks) number("chunks", word, 1);
  if (wanted.begin > wanted.end)
    usage_error("the largest size is below the smallest", fmt::format("from {} to {} bytes", wanted.begin, wanted.end),
                "give -e a size of at least -b");
}

std::vector<std::int64_t> counts(const WantedCases& wanted, Collective what, DType dtype, int ranks) {
  if (what == Collective::barrier) return {0};
  const bool blocks = what != Collective::all_reduce && what != Collective::broadcast && what != Collective::reduce;
  const std::int64_t size = size_of(dtype);
  std::vector<std::int64_t> found;
  const auto add = [&](std::int64_t bytes) {
    const std::int64_t whole = blocks ? ranks : 1;
    const std::int64_t count = bytes == 0 ? 0 : std::max<std::int64_t>(bytes / size / whole, 1) * whole;
    if (found.empty() || found.back() != count) found.push_back(count);
  };
  std::int64_t bytes = wanted.begin;
  if (bytes == 0) {
    add(0);
    bytes = size;
  }
  if (wanted.factor == 1) {
    add(bytes);
    return found;
  }
  while (bytes < wanted.end) {
    add(bytes);
    bytes = bytes > wanted.end / wanted.factor ? wanted.end : bytes * wanted.factor;
  }
  add(wanted.end);
  return found;
}

std::vector<std::size_t> turns_of(const std::vector<BenchCase>& cases, std::int64_t seed, bool together) {
  struct Group {
    std::size_t round;
    std::vector<std::size_t> cases = {};
  };
  std::vector<Group> groups;
  std::map<decltype(BenchCase().question()), std::size_t> group_of;
  std::map<long, std::size_t> rounds;  // number of the next round for each size; the key is the rounded log2 of the size
  for (const std::size_t c : order_by_seed(cases.size(), seed)) {
    const auto [group, is_new] = group_of.try_emplace(cases[c].question());
    if (is_new || !together) {
      group->second = groups.size();
      groups.push_back({rounds[std::lround(std::log2(cases[c].bytes() + 1))]++});
    }
    groups[group->second].cases.push_back(c);
  }
  if (seed != 0) std::ranges::stable_sort(groups, {}, &Group::round);
  std::vector<std::size_t> turns;
  for (const Group& group : groups) turns.insert(turns.end(), group.cases.begin(), group.cases.end());
  return turns;
}

CaseGrid make_grid(const WantedCases& wanted, const BenchWorld& stage) {
  CaseGrid grid;
  const auto skip = [&](const std::string& line) {
    if (!std::count(grid.skipped.begin(), grid.skipped.end(), line)) grid.skipped.push_back(line);
  };
  const auto each_size = [&](const BenchCase& row) {
    for (const std::int64_t count : counts(wanted, row.what, row.dtype, row.ranks)) {
      grid.cases.push_back(row);
      grid.cases.back().count = count;
    }
  };
  const auto each_place = [&](BenchCase row) {
    for (const bool in_place : {false, true}) {
      if (wanted.in_place != "both" && (wanted.in_place == "yes") != in_place) continue;
      if (!exists(row.what, in_place)) {
        if (wanted.in_place != "both")
          skip(fmt::format("{} {}: the collective has no such form", name_of(row.what),
                           in_place ? "in place" : "out of place"));
        continue;
      }
      row.in_place = in_place;
      if (const std::string why = why_not(row, stage); !why.empty())
        skip(fmt::format("{} {} on {}: {}", name_of(row.what), row.algorithm, row.backend, why));
      else
        each_size(row);
    }
  };
  const auto each_value = [&](BenchCase row) {
    const Words dtypes = row.what == Collective::barrier ? Words{"u8"} : wanted.dtypes;  // a barrier sends bytes
    for (const DType dtype : values<DType>(dtypes, dtype_names()))
      for (const Redop op : values<Redop>(reduces(row.what) ? wanted.redops : Words{"sum"}, words(redop_names)))
        for (const int root : has_root(row.what) ? roots(wanted.roots, row.ranks) : std::vector<int>{0}) {
          row.dtype = dtype;
          row.op = op;
          row.root = root;
          each_place(row);
        }
  };
  for (const Collective what : values<Collective>(wanted.ops, words(collective_names))) {
    Words algorithms = algorithms_of(what);
    if (stage.has_native[static_cast<std::size_t>(what)]) algorithms.emplace_back("native");
    for (const std::string& algorithm : expanded(wanted.algorithms, algorithms))
      for (const std::string& chunks : algorithm == "native" || algorithm == "auto" ? Words{"1"} : wanted.chunks) {
        BenchCase row{.backend = stage.backend, .what = what, .algorithm = algorithm, .chunks = number("chunks", chunks, 1)};
        row.ranks = row.count = stage.ranks;
        row.hosts = wanted.hosts.empty() ? stage.hosts : wanted.hosts;
        row.all = stage.all;
        each_value(row);
      }
  }
  return grid;
}

}  // namespace chorale::bench
