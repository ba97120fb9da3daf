// Helpers for tests of the backends that send messages: groups, plans, and calls with known results.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/message/control.hpp"
#include "src/base/random.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

struct Line {
  const Backend* backend;
  std::unique_ptr<Transport> transport;
};

// Opens each backend that sends messages, if the backend works on this machine.
inline std::vector<Line> open_all() {
  std::vector<Line> lines;
  for (const Backend& backend : all_backends())
    if (!backend.maps_memory && !backend.devices_only && probe(backend).works)
      lines.push_back({&backend, backend.open(world())});
  return lines;
}

inline std::vector<int> ranks(int first, int last) {
  std::vector<int> all;
  for (int rank = first; rank < last; ++rank) all.push_back(rank);
  return all;
}

// Creates a group of the given members. All ranks of the world must call join(). A rank that is not a member gets null.
inline std::unique_ptr<Group> join(Transport& transport, const std::vector<int>& members, std::uint32_t id) {
  const auto all = transport.exchange(transport.offer(static_cast<int>(members.size())));
  const auto self = std::find(members.begin(), members.end(), world().rank()) - members.begin();
  if (self == std::ssize(members)) return nullptr;
  std::vector<std::int64_t> offers;
  for (const int member : members) offers.push_back(all[static_cast<std::size_t>(member)]);
  return transport.join({members, static_cast<int>(self), id, offers});
}

inline std::unique_ptr<Group> join_all(Transport& transport, std::uint32_t id) {
  return join(transport, ranks(0, world().size()), id);
}

// The membership of a group of all ranks. Before a call of everybody(), all ranks must have joined the same number of groups
// on their control endpoints.
inline Membership everybody(ControlEndpoint& control) {
  const auto number = static_cast<std::int64_t>(control.next_number());
  return {ranks(0, world().size()), world().rank(), 1,
          std::vector<std::int64_t>(static_cast<std::size_t>(world().size()), number)};
}

inline Plan plan_of(const Algorithm* algorithm, const Problem& problem, DType dtype = DType::i32, Redop op = Redop::sum) {
  Plan plan{.algorithm = algorithm, .problem = problem.at(world().rank()), .dtype = dtype, .op = op};
  plan.words = fmt::format("{} {} of {} {}, {}, root {}{}", name_of(problem.what), algorithm ? algorithm->name : "native",
                           problem.blocks.total(), name_of(dtype), redop_names[static_cast<std::size_t>(op)], problem.root,
                           problem.in_place ? ", in place" : "");
  plan.signature = std::hash<std::string>()(plan.words) | 1;
  return plan;
}

// Returns a value so small that sums and products over 8 ranks are exact in every type.
inline std::int64_t value(Redop op, int rank, std::int64_t index) {
  const std::uint32_t bits =
      Random{.seed = 7, .site = static_cast<std::uint32_t>(rank)}.bits(static_cast<std::uint64_t>(index));
  return op == Redop::prod ? 1 + bits % 2 : bits % 5;
}

// The expected value of element `index` of the full vector. For an all_to_all, `index` is a position in this rank's output.
inline std::int64_t expected(const Plan& plan, std::int64_t index) {
  const Problem& p = plan.problem;
  const auto owner = [&](const Blocks& blocks) {
    int block = 0;
    while (index >= blocks.first(block) + blocks.count(block)) ++block;
    return block;
  };
  if (p.what == Collective::broadcast || p.what == Collective::scatter) return value(plan.op, p.root, index);
  if (p.takes_block()) return value(plan.op, owner(p.blocks), index);
  if (p.what == Collective::all_to_all) {  // equal blocks
    const int from = owner(p.taken);
    return value(plan.op, from, p.blocks.first(p.rank) + index - p.taken.first(from));
  }
  std::int64_t all = value(plan.op, 0, index);
  for (int rank = 1; rank < p.size; ++rank) {
    const std::int64_t next = value(plan.op, rank, index);
    if (plan.op == Redop::sum) all += next;
    if (plan.op == Redop::prod) all *= next;
    if (plan.op == Redop::min) all = std::min(all, next);
    if (plan.op == Redop::max) all = std::max(all, next);
  }
  return all;
}

// One call on a group, with its buffers. If the call is in place, input and output are parts of one vector. Each buffer ends
// with a guard byte, which no rank is allowed to write.
struct GroupCall {
  GroupCall(Group& group, const Plan& p) : plan(p), operation(group.prepare(p)) {
    const Problem& problem = plan.problem;
    const std::int64_t whole = std::max(problem.blocks.total(), problem.output_count());
    input.resize(bytes(problem.in_place ? whole : problem.input_count()) + 1);
    output.resize(bytes(problem.in_place ? 0 : problem.output_count()) + 1);
    in = input.data() + (problem.in_place ? bytes(problem.input_home()) : 0);
    out = problem.in_place ? input.data() + bytes(problem.output_home()) : output.data();
  }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count * size_of(plan.dtype)); }

  void start(std::uint64_t sequence, bool blocking = false) {
    std::fill(input.begin(), input.end(), std::byte{0x5a});
    std::fill(output.begin(), output.end(), std::byte{0x5a});
    const Problem& p = plan.problem;
    visit(plan.dtype, [&]<class T>(Type<T>) {
      for (std::int64_t i = 0; i < p.input_count(); ++i) {
        const T element(static_cast<T>(static_cast<float>(value(plan.op, p.rank, p.input_home() + i))));
        std::memcpy(in + bytes(i), &element, sizeof element);
      }
    });
    operation->start({in, out, sequence, plan.signature, blocking});
  }

  bool right() const {
    const Problem& p = plan.problem;
    if (p.what == Collective::barrier) return true;
    return input.back() == std::byte{0x5a} && output.back() == std::byte{0x5a} && visit(plan.dtype, [&]<class T>(Type<T>) {
             for (std::int64_t i = 0; i < p.output_count(); ++i) {
               T element;
               std::memcpy(static_cast<void*>(&element), out + bytes(i), sizeof element);
               const T wanted(static_cast<T>(static_cast<float>(expected(plan, p.output_home() + i))));
               if (std::memcmp(&element, &wanted, sizeof element) != 0) return false;
             }
             return true;
           });
  }

  Plan plan;
  std::unique_ptr<Operation> operation;
  std::vector<std::byte> input, output;
  std::byte *in = nullptr, *out = nullptr;
};

inline void finish(std::vector<Operation*> operations, double limit = 20) {
  SystemClock clock;
  const auto examine = [&] {
    for (Operation* operation : operations) operation->examine();
  };
  const auto done = [&] {
    std::erase_if(operations, [](Operation* operation) { return operation->progress(); });
    return operations.empty();
  };
  wait_until(done, {.clock = clock, .timeout_seconds = limit, .spins = 10, .on_idle = examine}, "a collective");
}

}  // namespace chorale::test
