#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collectives/analysis/drawing.hpp"
#include "collectives/analysis/symbolic_run.hpp"
#include "collectives/schedule/lanes.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale {
namespace {

constexpr int most_named = 8;

bool adds(Collective what) {
  using enum Collective;
  return what == all_reduce || what == reduce_scatter || what == reduce || what == barrier;
}

class TextDrawing {
 public:
  explicit TextDrawing(const std::vector<Schedule>& ranks)
      : ranks_(ranks), problem_(ranks.at(0).problem()), lanes_(problem_), run_(ranks, sums_) {
    for (int b = 0; b < problem_.size; ++b)
      if (problem_.blocks.count(b) > 0) blocks_.push_back(b);
  }

  std::string draw() {
    std::string text = "start\n" + state();
    while (run_.round() < run_.rounds().count) {
      const auto sent = sends_of(run_.round() + 1);
      run_.next_round();
      text += fmt::format("\nround {}\n", run_.round()) + state(sent);
    }
    return text;
  }

 private:
  using From = std::vector<int>;  // the contributing ranks, sorted

  std::string state(const std::vector<std::string>& sent = {}) {
    std::vector<std::string> columns{"rank"};
    if (!problem_.hosts.empty()) columns.insert(columns.begin(), "host");
    for (const int b : blocks_) columns.push_back(block_name(b, problem_.size));
    columns.push_back(sent.empty() ? "" : "sends");
    TextTable table(columns);
    for (int rank = 0; rank < problem_.size; ++rank) {
      std::vector<std::string> cells{std::to_string(rank)};
      if (!problem_.hosts.empty()) cells.insert(cells.begin(), fmt::format("n{}", lanes_.host_of(rank)));
      const std::vector<From> held = held_by(rank);
      // " " prevents right alignment, which TextTable applies to bare numbers.
      for (const int b : blocks_) cells.push_back(cell(held, b) + " ");
      cells.push_back(sent.empty() ? "" : sent[static_cast<std::size_t>(rank)]);
      table.add(std::move(cells));
    }
    return table.print("text");
  }

  const From& from(int sum) {
    From& known = from_[sum];
    if (known.empty()) {
      known = sums_.ranks(sum);
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());  // in a barrier, a rank may contribute twice
    }
    return known;
  }

  // For each element of the complete vector, finds the partial sum with the most contributions on this rank, and returns the
  // contributing ranks. In collectives without reductions, returns the ranks from which this rank's data for the element
  // originate.
  std::vector<From> held_by(int rank) {
    std::vector<From> held(static_cast<std::size_t>(problem_.blocks.total()));
    for (const Place place : {Place::output, Place::scratch, Place::input})
      for (std::int64_t i = 0; i < run_.count(rank, place); ++i) {
        const SymbolicValue symbol = run_.at(rank, place, i);
        if (symbol.element < 0) continue;
        From& best = held.at(static_cast<std::size_t>(symbol.element));
        if (adds(problem_.what)) {
          if (from(symbol.sum).size() > best.size()) best = from(symbol.sum);
        } else if (const int source = from(symbol.sum).at(0); std::find(best.begin(), best.end(), source) == best.end()) {
          best.insert(std::upper_bound(best.begin(), best.end(), source), source);
        }
      }
    return held;
  }

  std::string cell(const std::vector<From>& held, int block) const {
    const auto first = held.begin() + problem_.blocks.first(block), last = first + problem_.blocks.count(block);
    const From& least = *std::min_element(first, last, [](const From& a, const From& b) { return a.size() < b.size(); });
    const bool alike = std::all_of(first, last, [&](const From& other) { return other == least; });
    return words_for(least) + (alike ? "" : "…");
  }

  std::string words_for(const From& from) const {
    if (from.empty()) return "·";
    if (from.size() == ranks_.size() && from.size() > 1) return "Σ";
    if (!adds(problem_.what) && from.size() == 1) return std::to_string(from[0]);
    if (problem_.size > most_named) return fmt::format("{}×", from.size());
    return fmt::format("{}", fmt::join(from, adds(problem_.what) ? "+" : ","));
  }

  // For each rank, returns the blocks that the rank sends in this round, and their receivers: "a b → 1, c → 2".
  std::vector<std::string> sends_of(int round) {
    std::vector<std::string> sent(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < ranks_[r].steps.size(); ++s) {
        const Step& step = ranks_[r].steps[s];
        if (step.kind != Kind::send || run_.rounds().of[r][s] != round) continue;
        const bool between = lanes_.host_of(step.peers[0]) != lanes_.host_of(static_cast<int>(r));
        sent[r] += fmt::format("{}{} {} {}", sent[r].empty() ? "" : ", ", blocks_in(static_cast<int>(r), step.src.at(0)),
                               between ? "⇒" : "→", fmt::join(step.peers, " "));
      }
    return sent;
  }

  std::string blocks_in(int rank, const Range& range) {
    std::set<int> blocks;
    for (std::int64_t i = 0; i < range.count; ++i) {
      const std::int64_t element = run_.at(rank, range.place, range.first + i).element;
      for (const int b : blocks_)
        if (element >= problem_.blocks.first(b) && element < problem_.blocks.first(b) + problem_.blocks.count(b))
          blocks.insert(b);
    }
    if (blocks.size() == blocks_.size() && blocks.size() > 1) return "all";
    const int first = *blocks.begin(), last = *blocks.rbegin();
    if (blocks.size() > 2 && last - first + 1 == static_cast<int>(blocks.size()))
      return fmt::format("{}–{}", block_name(first, problem_.size), block_name(last, problem_.size));
    std::vector<std::string> names;
    for (const int b : blocks) names.push_back(block_name(b, problem_.size));
    return join(names, " ");
  }

  const std::vector<Schedule>& ranks_;
  const Problem& problem_;
  const Lanes lanes_;
  Expressions sums_;
  SymbolicRun run_;
  std::map<int, From> from_;  // keyed by expression in sums_
  std::vector<int> blocks_;   // the blocks that are not empty
};

}  // namespace

std::string block_name(int block, int size) {
  return size <= 26 ? std::string(1, static_cast<char>('a' + block)) : std::to_string(block);
}

std::string draw_text(const std::vector<Schedule>& ranks) { return TextDrawing(ranks).draw(); }

}  // namespace chorale
