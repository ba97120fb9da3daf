// Tests cells (mapped/cell.hpp), and explores every order in which the loads and stores of a few ranks can take effect when
// small calls follow each other (mapped/eager_operation.cpp). As on real cores, the stores of a rank take effect in their
// order but later than its loads.
//
//   rank 0   enter ── data ── tag ── data ── tag ── wait for the tags of rank 1 ── load its data ── finished ──▶ next call
//   rank 1   enter ── …                    at each point, any rank executes its next step, or its oldest store takes effect
//
// Many orders lead to the same state, and each state is explored once. Every loaded value must come from the call that loads
// it. Three planted faults show that the exploration finds what it looks for.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "collectives/backends/mapped/cell.hpp"
#include "tests/catch.hpp"

namespace chorale::test {
namespace {

using mapped::EagerCell;

enum class Fault { none, tag_before_data, enters_early, same_tag_in_every_call };

struct Protocol {
  int ranks, calls, cells;
  Fault fault = Fault::none;
  static constexpr int slots = 2;  // as the eight slots of a flag page, but few enough to explore
};

// Every third call is a broadcast from rank 0, in which rank 0 waits for nobody.
bool writes(int rank, int call) { return call % 3 != 0 || rank == 0; }
int value_of(int rank, int call, int cell) { return 1 + cell + 4 * (rank + 4 * call); }

struct Step {
  enum Kind { enter, store, wait, load } kind;
  int address, value;
};

// The addresses of the model: a word `finished` and the cells of each rank.
struct Board {
  explicit Board(const Protocol& its_protocol) : protocol(its_protocol) {}
  int finished(int rank) const { return rank; }
  int data(int rank, int call, int cell) const {
    return protocol.ranks + 2 * ((rank * Protocol::slots + call % Protocol::slots) * protocol.cells + cell);
  }
  int tag(int rank, int call, int cell) const { return data(rank, call, cell) + 1; }
  int size() const { return protocol.ranks + 2 * protocol.ranks * Protocol::slots * protocol.cells; }
  const Protocol& protocol;
};

std::vector<Step> script(const Protocol& p, int rank) {
  const Board board(p);
  std::vector<Step> steps;
  for (int call = 1; call <= p.calls; ++call) {
    const int tag = p.fault == Fault::same_tag_in_every_call ? 1 : call;
    steps.push_back({Step::enter, 0, call - Protocol::slots - (p.fault == Fault::enters_early)});
    for (int cell = 0; writes(rank, call) && cell < p.cells; ++cell) {
      const Step data{Step::store, board.data(rank, call, cell), value_of(rank, call, cell)};
      const Step flag{Step::store, board.tag(rank, call, cell), tag};
      const bool reversed = p.fault == Fault::tag_before_data;
      steps.push_back(reversed ? flag : data);
      steps.push_back(reversed ? data : flag);
    }
    for (int peer = 0; peer < p.ranks; ++peer)
      for (int cell = 0; peer != rank && writes(peer, call) && cell < p.cells; ++cell) {
        steps.push_back({Step::wait, board.tag(peer, call, cell), tag});
        steps.push_back({Step::load, board.data(peer, call, cell), value_of(peer, call, cell)});
      }
    steps.push_back({Step::store, board.finished(rank), call});
  }
  return steps;
}

struct State {
  std::vector<int> memory;
  std::vector<std::size_t> at;                         // indexed by rank: the next step
  std::vector<std::vector<std::pair<int, int>>> late;  // indexed by rank: stores that have not taken effect yet
  auto operator<=>(const State&) const = default;
};

struct Found {
  std::string trouble;
  std::size_t states = 0;
};

Found explore(const Protocol& p) {
  constexpr std::size_t most_late = 3;
  const auto ranks = static_cast<std::size_t>(p.ranks);
  std::vector<std::vector<Step>> scripts;
  for (int rank = 0; rank < p.ranks; ++rank) scripts.push_back(script(p, rank));
  const State first{std::vector<int>(static_cast<std::size_t>(Board(p).size()), 0), std::vector<std::size_t>(ranks, 0),
                    std::vector<std::vector<std::pair<int, int>>>(ranks)};
  std::set<State> seen{first};
  std::vector<State> open{first};
  const auto add = [&](State state) {
    if (seen.insert(state).second) open.push_back(std::move(state));
  };
  while (!open.empty()) {
    const State now = std::move(open.back());
    open.pop_back();
    bool moves = false, over = true;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (!now.late[r].empty()) {
        State next = now;
        const auto [address, value] = next.late[r].front();
        next.memory[static_cast<std::size_t>(address)] = value;
        next.late[r].erase(next.late[r].begin());
        add(std::move(next));
        moves = true;
      }
      if (now.at[r] == scripts[r].size()) continue;
      over = false;
      const Step& step = scripts[r][now.at[r]];
      const int there = now.memory[static_cast<std::size_t>(step.address)];
      if (step.kind == Step::enter) {
        bool others_finished = true;
        for (std::size_t other = 0; other < ranks; ++other)
          others_finished = others_finished && (other == r || now.memory[other] >= step.value);
        if (!others_finished) continue;
      }
      if (step.kind == Step::wait && there != step.value) continue;
      if (step.kind == Step::store && now.late[r].size() == most_late) continue;
      if (step.kind == Step::load && there != step.value)
        return {fmt::format("rank {} loads {} instead of {}", r, there, step.value), seen.size()};
      State next = now;
      if (step.kind == Step::store) next.late[r].emplace_back(step.address, step.value);
      ++next.at[r];
      add(std::move(next));
      moves = true;
    }
    if (!moves && !over) return {"the ranks wait for each other", seen.size()};
  }
  return {"", seen.size()};
}

}  // namespace

TEST_CASE("in every order of loads and stores, small calls read the data of their own call") {
  for (const Protocol& p : {Protocol{2, 5, 2}, Protocol{2, 7, 1}, Protocol{3, 4, 1}}) {
    const Found found = explore(p);
    INFO(p.ranks << " ranks, " << p.calls << " calls, " << p.cells << " cells: " << found.states << " states");
    CHECK(found.trouble == "");
    CHECK(found.states > 1000);
  }
}

TEST_CASE("the exploration of small calls finds planted faults") {
  CHECK(explore({2, 3, 1, Fault::tag_before_data}).trouble != "");
  CHECK(explore({2, 5, 1, Fault::enters_early}).trouble != "");
  CHECK(explore({2, 5, 1, Fault::same_tag_in_every_call}).trouble != "");
}

TEST_CASE("a message of any length passes through cells, also in several parts") {
  std::vector<EagerCell> cells(8);
  std::vector<std::byte> sent(8 * 56), got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  for (std::int64_t bytes = 0; bytes <= std::ssize(sent); ++bytes) {
    const auto tag = static_cast<std::uint64_t>(1000 + bytes);
    std::fill(got.begin(), got.end(), std::byte{0xEE});
    std::int64_t done = 0;
    CHECK(mapped::take_cells(cells.data(), 0, got.data(), bytes, done, tag) == (bytes == 0));
    const std::int64_t part = std::min<std::int64_t>(bytes, 2 * 56);  // the first two cells arrive earlier
    mapped::fill_cells(cells.data(), sent.data(), part, tag);
    CHECK(mapped::take_cells(cells.data(), 0, got.data(), bytes, done, tag) == (part == bytes));
    CHECK(done == part);
    if (part < bytes) mapped::fill_cells(cells.data() + 2, sent.data() + part, bytes - part, tag);
    CHECK(mapped::take_cells(cells.data(), 0, got.data(), bytes, done, tag));
    const auto length = static_cast<std::ptrdiff_t>(bytes);
    CHECK(std::equal(sent.begin(), sent.begin() + length, got.begin()));
    CHECK(std::all_of(got.begin() + length, got.end(), [](std::byte one) { return one == std::byte{0xEE}; }));
    CHECK(mapped::cells_of(0, bytes) == (bytes + 55) / 56);
    for (const std::int64_t first : {1, 55, 56, 57}) {  // a part of the message, from any position
      if (first >= bytes) continue;
      done = 0;
      CHECK(mapped::take_cells(cells.data(), first, got.data(), bytes - first, done, tag));
      CHECK(std::equal(sent.begin() + first, sent.begin() + length, got.begin()));
      CHECK(mapped::cells_of(first, bytes - first) == (bytes + 55) / 56 - first / 56);
    }
  }
}

}  // namespace chorale::test
