#include "collectives/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <deque>
#include <map>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr int most_ranks = 256;

// One element: whose contributions it holds, of which element of the whole vector. Nobody's: not written yet.
struct Symbol {
  std::int64_t element = -1;
  std::bitset<most_ranks> from;
};
using Values = std::vector<Symbol>;

std::string at(int rank, std::size_t step) { return fmt::format("rank {}, step {}", rank, step); }

// The buffers of one rank. In place, input and output are one vector, and an index into either is one into that.
class Memory {
 public:
  explicit Memory(const Schedule& schedule) : problem_(schedule.problem()) {
    const Problem& p = problem_;
    const auto of = [](std::int64_t count) { return Values(static_cast<std::size_t>(count)); };
    input_ = of(p.in_place ? p.blocks.total() : p.input_count());
    output_ = of(p.in_place ? 0 : p.output_count());
    scratch_ = of(schedule.scratch_count());
    for (std::int64_t i = 0; i < p.input_count(); ++i) {
      find(Place::input, i)->element = p.input_home() + i;
      find(Place::input, i)->from.set(static_cast<std::size_t>(p.rank));
    }
  }

  Symbol* find(Place place, std::int64_t index) {  // nullptr outside the buffer
    const Problem& p = problem_;
    const std::int64_t count = place == Place::input    ? p.input_count()
                               : place == Place::output ? p.output_count()
                                                        : static_cast<std::int64_t>(scratch_.size());
    if (index < 0 || index >= count) return nullptr;
    if (place == Place::scratch) return &scratch_[static_cast<std::size_t>(index)];
    if (p.in_place)
      return &input_[static_cast<std::size_t>(index + (place == Place::input ? p.input_home() : p.output_home()))];
    return &(place == Place::input ? input_ : output_)[static_cast<std::size_t>(index)];
  }

 private:
  const Problem& problem_;
  Values input_, output_, scratch_;
};

// Who must have contributed to element e of the whole vector at the end.
std::bitset<most_ranks> wanted(const Problem& p, std::int64_t e) {
  std::bitset<most_ranks> from;
  if (p.what == Collective::broadcast || p.what == Collective::scatter) return from.set(static_cast<std::size_t>(p.root));
  for (int r = 0; r < p.size; ++r)
    if (!p.takes_block() || (e >= p.blocks.first(r) && e < p.blocks.first(r) + p.blocks.count(r)))
      from.set(static_cast<std::size_t>(r));
  return from;
}

class Simulation {
 public:
  explicit Simulation(const std::vector<Schedule>& ranks) : ranks_(ranks) {
    for (const Schedule& schedule : ranks) {
      memory_.emplace_back(schedule);
      done_.emplace_back(schedule.steps.size(), false);
    }
    first_open_.resize(ranks.size(), 0);
  }

  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        while (first_open_[r] < done_[r].size() && done_[r][first_open_[r]]) ++first_open_[r];
        for (std::size_t s = first_open_[r]; s < ranks_[r].steps.size(); ++s) {
          if (done_[r][s] || !ready(r, s)) continue;
          if (const std::string trouble = execute(r, s); !trouble.empty()) return trouble;
          moved = done_[r][s] = true;
        }
      }
    }
    return leftovers();
  }

  std::string compare() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Problem& p = ranks_[r].problem();
      for (std::int64_t i = 0; i < p.output_count(); ++i) {
        const Symbol& symbol = *memory_[r].find(Place::output, i);
        const std::int64_t element = p.output_home() + i;
        if (symbol.element == element && symbol.from == wanted(p, element)) continue;
        return fmt::format("rank {}, output element {}: {} of {} contributions, of element {} instead of {}", r, i,
                           symbol.from.count(), wanted(p, element).count(), symbol.element, element);
      }
    }
    return "";
  }

 private:
  bool ready(std::size_t r, std::size_t s) {
    const Step& step = ranks_[r].steps[s];
    for (const int before : step.after)
      if (!done_[r][static_cast<std::size_t>(before)]) return false;
    // A channel is first in, first out: this receive must be the next one of its channel.
    for (std::size_t earlier = first_open_[r]; earlier < s; ++earlier)
      if (!done_[r][earlier] && (step.kind == Kind::send) == (ranks_[r].steps[earlier].kind == Kind::send))
        for (const int peer : step.peers)
          for (const int other : ranks_[r].steps[earlier].peers)
            if (peer == other) return false;
    if (step.kind == Kind::recv || step.kind == Kind::recv_reduce)
      for (const int peer : step.peers)
        if (channels_[{peer, static_cast<int>(r)}].empty()) return false;
    return true;
  }

  std::string execute(std::size_t r, std::size_t s) {
    const Step& step = ranks_[r].steps[s];
    const int rank = static_cast<int>(r);
    std::vector<Values> addends;
    for (const Range& range : step.src) {
      Values values;
      for (std::int64_t i = 0; i < range.count; ++i) {
        const Symbol* symbol = memory_[r].find(range.place, range.first + i);
        if (!symbol) return fmt::format("{}: reads outside its buffer, at {}", at(rank, s), range.first + i);
        if (symbol->from.none())
          return fmt::format("{}: reads element {} before it is written", at(rank, s), range.first + i);
        values.push_back(*symbol);
      }
      addends.push_back(std::move(values));
    }
    if (step.kind == Kind::send) {
      for (const int peer : step.peers) channels_[{rank, peer}].push_back(addends.at(0));
      return "";
    }
    if (step.kind == Kind::recv || step.kind == Kind::recv_reduce)
      for (const int peer : step.peers) {
        auto& channel = channels_[{peer, rank}];
        addends.push_back(std::move(channel.front()));
        channel.pop_front();
      }
    return store(r, s, addends);
  }

  std::string store(std::size_t r, std::size_t s, const std::vector<Values>& addends) {
    const Step& step = ranks_[r].steps[s];
    const int rank = static_cast<int>(r);
    for (const Values& values : addends)
      if (static_cast<std::int64_t>(values.size()) != step.dst.count)
        return fmt::format("{}: {} elements come, {} are expected", at(rank, s), values.size(), step.dst.count);
    for (std::int64_t i = 0; i < step.dst.count; ++i) {
      Symbol sum = addends.at(0)[static_cast<std::size_t>(i)];
      for (std::size_t a = 1; a < addends.size(); ++a) {
        const Symbol& other = addends[a][static_cast<std::size_t>(i)];
        if (other.element != sum.element)
          return fmt::format("{}: adds element {} to element {}", at(rank, s), other.element, sum.element);
        if ((other.from & sum.from).any())
          return fmt::format("{}: a contribution to element {} comes twice", at(rank, s), sum.element);
        sum.from |= other.from;
      }
      Symbol* place = memory_[r].find(step.dst.place, step.dst.first + i);
      if (!place) return fmt::format("{}: writes outside its buffer, at {}", at(rank, s), step.dst.first + i);
      *place = sum;
    }
    return "";
  }

  std::string leftovers() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < ranks_[r].steps.size(); ++s)
        if (!done_[r][s]) return fmt::format("{}: waits for ever", at(static_cast<int>(r), s));
    for (const auto& [channel, messages] : channels_)
      if (!messages.empty())
        return fmt::format("rank {}: {} messages to rank {} are never received", channel.first, messages.size(),
                           channel.second);
    return "";
  }

  const std::vector<Schedule>& ranks_;
  std::vector<Memory> memory_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::size_t> first_open_;  // all steps before it are done
  std::map<std::pair<int, int>, std::deque<Values>> channels_;
};

}  // namespace

std::string find_flaw(const std::vector<Schedule>& ranks) {
  require(ranks.size() <= most_ranks, "{} ranks are more than the checker's {}", ranks.size(), most_ranks);
  for (const Schedule& schedule : ranks)
    if (const std::string trouble = find_hazard(schedule); !trouble.empty()) return trouble;
  Simulation simulation(ranks);
  if (const std::string trouble = simulation.run(); !trouble.empty()) return trouble;
  if (const std::string trouble = simulation.compare(); !trouble.empty()) return trouble;
  return find_deadlock(ranks);
}

}  // namespace chorale
