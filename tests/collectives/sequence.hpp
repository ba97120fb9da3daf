// A random program of collectives, the same on all ranks. The program makes calls on overlapping groups and sends messages
// between two ranks. The program waits for some calls right after it has started them, and for other calls later, in a
// different order on each rank. The program also splits and drops groups.
#pragma once
#include <array>
#include <cstdint>

#include <chorale/algorithm.hpp>
#include "tests/collectives/expectation.hpp"

namespace chorale::test {

// A few random numbers that determine one act of the program. Any list of acts is a valid program, so a failing program can
// be shortened by removing acts.
struct Act {
  std::uint8_t what = 0, group = 0, algorithm = 0, dtype = 0, op = 0, root = 0, how = 0;
  std::uint16_t count = 0;
};

class Performance {
 public:
  Performance(Communicator world) { groups_.push_back(std::move(world)); }

  // Runs the program on this rank. Returns "" if every result is correct. Errors are printed immediately, because other
  // ranks may be waiting for a call that this rank never makes.
  std::string play(const std::vector<Act>& acts) {
    std::string trouble;
    try {
      for (std::size_t a = 0; a < acts.size() && trouble.empty(); ++a) trouble = play(acts[a]);
      while (!pending_.empty() && trouble.empty()) trouble = wait_for_one();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    if (!trouble.empty()) fmt::print(stderr, "{}\n", trouble);
    while (groups_.size() > 1) groups_.pop_back();
    return trouble;
  }

 private:
  struct Pending {
    Trial trial;
    Request request;  // destroyed first
  };

  std::string play(const Act& act) {
    std::size_t g = act.group % groups_.size();
    Communicator& group = groups_[g];
    if (act.what % 16 == 15 && groups_.size() < 6) {  // every rank adds an entry, even without a group
      if (group)
        groups_.push_back(group.split(color_of(act, group.rank()), act.how & 8 ? -group.rank() : 0));
      else
        groups_.push_back(Communicator(nullptr));
      return "";
    }
    if (act.what % 16 == 14 && g > 0 && g + 1 == groups_.size()) {  // calls in flight keep the dropped group alive
      groups_.pop_back();
      return "";
    }
    if (act.what % 16 == 13) return pending_.empty() ? "" : wait_for_one();
    if (!group) return "";
    return act.what % 16 == 12 && group.size() > 1 ? message(act, group) : collective(act, group);
  }

  static int color_of(const Act& act, int rank) {
    const int colors = 1 + act.root % 3;
    return rank % (colors + 1) == colors && (act.how & 4) ? -1 : (act.how & 2 ? rank / 2 : rank) % colors;
  }

  std::string collective(const Act& act, Communicator& group) {
    const auto what = static_cast<Collective>(act.what % std::size(collective_names));
    const int p = group.size();
    const auto dtype = all_dtypes[act.dtype % std::size(all_dtypes)];
    const auto op = static_cast<Redop>(act.op % std::size(redop_names));
    std::int64_t count = act.count % 3 == 0 ? act.count % (2 * p + 2) : act.count % 3 == 1 ? act.count % 3000 : act.count;
    const bool equal_blocks = what == Collective::gather || what == Collective::scatter || what == Collective::all_to_all;
    if (equal_blocks) count = count / p * p;
    const bool in_place = count > 0 && (what == Collective::broadcast || ((act.how & 1) && !equal_blocks));
    Problem problem = Problem::even(what, count, p, act.root % p, in_place);
    problem.rank = group.rank();
    choose(act, group, problem);
    if (act.how & 128) group.pretend_hosts(some_hosts(act, p));
    if (what == Collective::barrier) {
      group.barrier();
      return "";
    }
    return go(Trial(problem, dtype, op, memory_for(act, group)), act,
              [&](const Trial& trial) { return group.start(trial.call()); });
  }

  static void choose(const Act& act, Communicator& group, const Problem& problem) {
    std::vector<const Algorithm*> able;
    for (const Algorithm& algorithm : all_algorithms())
      if (algorithm.what == problem.what && fits(algorithm, problem)) able.push_back(&algorithm);
    const std::size_t pick = act.algorithm % (able.size() + 1);
    if (pick == able.size())
      group.choose(problem.what, "auto");
    else
      group.choose(problem.what, able[pick]->name, 1 + act.algorithm / 64);
  }

  // Places the ranks on up to four hosts, consecutively or interleaved. The numbers of ranks per host can differ.
  static std::vector<int> some_hosts(const Act& act, int size) {
    std::vector<int> hosts;
    for (int rank = 0; rank < size; ++rank) hosts.push_back((rank + act.group % 3) / (1 + act.root % 3) % (1 + act.op % 4));
    return hosts;
  }

  // Sends a message from one rank of the group to another. The message holds the same values as the input of a broadcast.
  std::string message(const Act& act, Communicator& group) {
    const int p = group.size(), from = act.root % p, to = (from + 1 + act.op % (p - 1)) % p;
    if (group.rank() != from && group.rank() != to) return "";
    Problem problem = Problem::even(Collective::broadcast, 1 + act.count % 5000, p, from, true);
    problem.rank = group.rank();
    return go(Trial(problem, DType::f32, Redop::sum, memory_for(act, group)), act, [&](const Trial& trial) {
      return group.rank() == from ? group.start_send(trial.output(), to) : group.start_recv(trial.output(), from);
    });
  }

  Allocator& memory_for(const Act& act, Communicator& group) {
    const bool odd_one = (group.rank() + act.root) % 2 == 1;
    return (act.how & 32) && (odd_one || (act.how & 64)) ? ordinary_ : group.allocator();
  }

  template <class Start>
  std::string go(Trial trial, const Act& act, Start&& start) {
    Request request = start(trial);
    if (act.how & 16) {
      pending_.push_back({std::move(trial), std::move(request)});
      return "";
    }
    request.wait();
    return trial.trouble();
  }

  // Waits for one of the pending calls. Ranks wait for their pending calls in different orders.
  std::string wait_for_one() {
    const int rank = groups_[0].rank();
    const auto which =
        pending_.begin() + (rank * 7 + static_cast<int>(pending_.size()) * 3) % static_cast<int>(pending_.size());
    Pending one = std::move(*which);
    pending_.erase(which);
    one.request.wait();
    return one.trial.trouble();
  }

  HostMemory heap_;
  Ledger ledger_;
  Allocator ordinary_{heap_, ledger_};
  std::vector<Communicator> groups_;
  std::vector<Pending> pending_;  // destroyed first: its requests need the groups
};

}  // namespace chorale::test
