#include "collectives/analysis/checker.hpp"

#include <fmt/format.h>

#include <bitset>

#include "collectives/analysis/flow.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr int most_ranks = 256;

// The symbol of a buffer element gives the index of the element in the complete vector, and the ranks that have contributed
// to the element. If no rank has contributed, the buffer element has not been written yet. In an all_to_all, every rank has
// its own vector, and the elements of all vectors are numbered consecutively in rank order.
struct Symbol {
  std::int64_t element = -1;
  std::bitset<most_ranks> from;
};
using Values = std::vector<Symbol>;

class SymbolicSimulation {
 public:
  explicit SymbolicSimulation(const std::vector<Schedule>& ranks) : ranks_(ranks) {
    for (const Schedule& schedule : ranks) {
      const Problem& p = schedule.problem();
      lineups_.emplace_back(schedule);
      memory_.emplace_back(lineups_.back().size());
      vector_start_.push_back(p.what == Collective::all_to_all ? inputs_ : 0);
      inputs_ += p.input_count();
      for (std::int64_t i = 0; i < p.input_count(); ++i) {
        Symbol& symbol = memory_.back()[lineups_.back().at(Place::input, i)];
        symbol.element = vector_start_.back() + p.input_home() + i;
        symbol.from.set(static_cast<std::size_t>(p.rank));
      }
      auto& arrived = arrived_.emplace_back();
      for (const Step& step : schedule.steps) arrived.emplace_back(step.kind == Kind::send ? 0 : step.peers.size());
    }
  }

  std::string run(const StepGraph& graph) {
    std::string trouble;
    const auto unless_broken = [&](auto what) {
      return [&, what](std::size_t r, std::size_t s) {
        if (trouble.empty()) trouble = what(r, s);
      };
    };
    const auto [rank, step] =
        walk(graph, true, unless_broken([&](std::size_t r, std::size_t s) { return send(graph, r, s); }),
             unless_broken([&](std::size_t r, std::size_t s) { return store(r, s); }));
    if (!trouble.empty()) return trouble;
    if (rank >= 0)
      return fmt::format("{}: waits forever", at(ranks_[static_cast<std::size_t>(rank)], static_cast<std::size_t>(step)));
    return graph.unmatched();
  }

  std::string compare() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::int64_t i = 0; i < ranks_[r].problem().output_count(); ++i) {
        const Symbol& symbol = memory_[r][lineups_[r].at(Place::output, i)];
        const Symbol wanted = expected(r, i);
        if (symbol.element == wanted.element && symbol.from == wanted.from) continue;
        return fmt::format("rank {}, output element {}: has {} of {} contributions, to element {} instead of {}", r, i,
                           symbol.from.count(), wanted.from.count(), symbol.element, wanted.element);
      }
    return "";
  }

 private:
  // Returns the symbol that element i of a rank's output must hold at the end.
  Symbol expected(std::size_t rank, std::int64_t i) const {
    const Problem& p = ranks_[rank].problem();
    Symbol symbol;
    if (p.what == Collective::all_to_all) {
      int source = 0;
      while (i >= p.taken.first(source) + p.taken.count(source)) ++source;
      const auto from = static_cast<std::size_t>(source);
      symbol.element = vector_start_[from] + ranks_[from].problem().blocks.first(p.rank) + i - p.taken.first(source);
      symbol.from.set(from);
      return symbol;
    }
    const std::int64_t e = symbol.element = p.output_home() + i;
    const bool from_root = p.what == Collective::broadcast || p.what == Collective::scatter;
    for (int r = 0; r < p.size; ++r) {
      const bool in_block = e >= p.blocks.first(r) && e < p.blocks.first(r) + p.blocks.count(r);
      if (from_root ? r == p.root : !p.takes_block() || in_block) symbol.from.set(static_cast<std::size_t>(r));
    }
    return symbol;
  }

  std::string read(std::size_t r, std::size_t s, const Range& range, Values& values) const {
    for (std::int64_t i = 0; i < range.count; ++i) {
      values.push_back(memory_[r][lineups_[r].at(range.place, range.first + i)]);
      if (values.back().from.none())
        return fmt::format("{}: reads element {} before it is written", at(ranks_[r], s), range.first + i);
    }
    return "";
  }

  std::string send(const StepGraph& graph, std::size_t r, std::size_t s) {
    const Step& step = ranks_[r].steps[s];
    if (step.kind != Kind::send) return "";
    Values values;
    if (const std::string trouble = read(r, s, step.src.at(0), values); !trouble.empty()) return trouble;
    for (const StepGraph::Meeting& to : graph.meetings(r, s))
      if (to.rank >= 0) arrived_[static_cast<std::size_t>(to.rank)][static_cast<std::size_t>(to.step)][to.slot] = values;
    return "";
  }

  std::string store(std::size_t r, std::size_t s) {
    const Step& step = ranks_[r].steps[s];
    if (step.kind == Kind::send) return "";
    const auto here = [&] { return at(ranks_[r], s); };
    // In a barrier, repeated contributions are harmless.
    const bool may_come_twice = ranks_[r].problem().what == Collective::barrier;
    std::vector<Values> addends(step.src.size());
    for (std::size_t k = 0; k < step.src.size(); ++k)
      if (const std::string trouble = read(r, s, step.src[k], addends[k]); !trouble.empty()) return trouble;
    for (Values& values : arrived_[r][s]) addends.push_back(std::move(values));
    for (const Values& values : addends)
      if (static_cast<std::int64_t>(values.size()) != step.dst.count)
        return fmt::format("{}: {} elements arrive, {} are expected", here(), values.size(), step.dst.count);
    for (std::size_t i = 0; i < addends.at(0).size(); ++i) {
      Symbol sum = addends[0][i];
      for (std::size_t a = 1; a < addends.size(); ++a) {
        const Symbol& other = addends[a][i];
        if (other.element != sum.element)
          return fmt::format("{}: adds element {} to element {}", here(), other.element, sum.element);
        if ((other.from & sum.from).any() && !may_come_twice)
          return fmt::format("{}: adds a rank's contribution to element {} twice", here(), sum.element);
        sum.from |= other.from;
      }
      memory_[r][lineups_[r].at(step.dst.place, step.dst.first + static_cast<std::int64_t>(i))] = sum;
    }
    return "";
  }

  const std::vector<Schedule>& ranks_;
  std::vector<Lineup> lineups_;
  std::vector<Values> memory_;
  std::vector<std::vector<std::vector<Values>>> arrived_;  // indexed by rank, step and peer
  // Indexed by rank: number of the first element of the rank's vector.
  std::vector<std::int64_t> vector_start_;
  std::int64_t inputs_ = 0;
};

}  // namespace

std::string find_flaw(const std::vector<Schedule>& ranks) {
  require(ranks.size() <= most_ranks, "{} ranks exceed the checker's limit of {}", ranks.size(), most_ranks);
  for (const Schedule& schedule : ranks) {
    if (const std::string trouble = find_misshapen(schedule); !trouble.empty()) return trouble;
    if (const std::string trouble = find_hazard(schedule); !trouble.empty()) return trouble;
  }
  const StepGraph graph(ranks);
  SymbolicSimulation simulation(ranks);
  if (const std::string trouble = simulation.run(graph); !trouble.empty()) return trouble;
  if (const std::string trouble = simulation.compare(); !trouble.empty()) return trouble;
  return find_deadlock(graph);
}

}  // namespace chorale
