// From a call to its route: what is refused, which calls are the same, which problem a call poses, and which algorithm solves it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collectives/chunking.hpp"
#include "collectives/flight.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

std::int64_t sum_of(Counts counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

std::int64_t even_first(std::int64_t total, int size, int rank) {
  return total / size * rank + std::min<std::int64_t>(rank, total % size);
}

// The whole vector's elements, as this rank's buffers tell.
std::int64_t total_of(const Call& call, int size) {
  if (!call.counts.empty() && call.what != Collective::all_to_all) return sum_of(call.counts);
  switch (call.what) {
    case Collective::broadcast:
    case Collective::all_gather: return call.output.count;
    case Collective::gather: return call.input.count * size;
    case Collective::scatter: return call.output.count * size;
    case Collective::barrier: return 1;
    default: return call.input.count;
  }
}

bool is_in_place(const Call& call, int rank, int size, std::int64_t total) {
  if (call.what == Collective::all_to_all && !call.counts.empty()) return call.input.data == call.output.data;
  // An empty block has no meaningful address, so if any block is empty, all ranks treat the call as out of place. An input
  // that is the output's block is still found there.
  const bool any_empty = call.counts.empty() ? total < size : std::ranges::count(call.counts, 0) > 0;
  if (total == 0 || (any_empty && (call.what == Collective::all_gather || call.what == Collective::reduce_scatter)))
    return false;
  const auto shifted = [&](const Slice& whole) {
    const std::int64_t first =
        call.counts.empty() ? even_first(total, size, rank) : sum_of(call.counts.first(static_cast<std::size_t>(rank)));
    return static_cast<std::byte*>(whole.data) + first * size_of(whole.dtype);
  };
  switch (call.what) {
    case Collective::all_gather: return call.input.data == shifted(call.output);
    case Collective::reduce_scatter: return call.output.data == shifted(call.input);
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: return false;
    default: return call.input.data == call.output.data;
  }
}

Problem problem_of(const Key& key, Counts counts, int rank, int size) {
  Problem problem = Problem::even(key.what, key.count, size, key.root, key.in_place);
  problem.rank = rank;
  const auto half = static_cast<std::ptrdiff_t>(size);
  if (!counts.empty()) problem.blocks = Blocks({counts.begin(), counts.begin() + half});
  if (counts.empty() || key.what != Collective::all_to_all) return problem;
  problem.taken = Blocks({counts.begin() + half, counts.begin() + 2 * half});
  if (counts.size() > 2 * static_cast<std::size_t>(size)) problem.in_place = counts.back() != 0;
  return problem;
}

// A buffer that is too long is refused like one that is too short: its last elements would be left out in silence.
void check_buffers(const Call& call, const Problem& p) {
  const auto name = name_of(call.what);
  if (call.what == Collective::barrier) return;
  const bool others_input = p.rank != p.root && (call.what == Collective::broadcast || call.what == Collective::scatter);
  const bool others_output = p.rank != p.root && (call.what == Collective::reduce || call.what == Collective::gather);
  const bool gives = p.input_count() > 0, gets = p.output_count() > 0;
  require(!gives || !gets || call.input.dtype == call.output.dtype, "{} on rank {}: input is {}, output is {}", name, p.rank,
          name_of(call.input.dtype), name_of(call.output.dtype));
  require(call.what != Collective::all_to_all || !call.counts.empty() || call.input.count % p.size == 0,
          "{} on rank {}: {} elements cannot be cut into {} equal blocks", name, p.rank, call.input.count, p.size);
  require(others_input || call.input.count == p.input_count(), "{} on rank {}: the input has {} elements, {} are wanted",
          name, p.rank, call.input.count, p.input_count());
  require(others_output || call.output.count == p.output_count(), "{} on rank {}: the output has {} elements, {} are wanted",
          name, p.rank, call.output.count, p.output_count());
  require((!gives || call.input.data) && (!gets || call.output.data), "{} on rank {}: a buffer is null", name, p.rank);
}

void refuse_mixed(const Call& call, int rank) {
  if (call.input.count == 0 || call.output.count == 0 || call.input.device.is_host() == call.output.device.is_host()) return;
  throw Error(Exit::runtime, fmt::format("{} on rank {} mixes host and device buffers", name_of(call.what), rank),
              fmt::format("the input is on {}, the output on {}", name_of(call.input.device), name_of(call.output.device)),
              "copy one of them to where the other is");
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

// Of all that must be the same on every rank. An all_to_all's counts need not be, and then nor whether it is in place: a rank that
// gives or takes nothing may have no buffer.
std::uint64_t signature_of(const Key& key, const Choice& choice) {
  std::uint64_t hash = 1;
  for (const std::uint64_t part : {static_cast<std::uint64_t>(key.what), static_cast<std::uint64_t>(key.dtype),
                                   static_cast<std::uint64_t>(key.op), static_cast<std::uint64_t>(key.root),
                                   static_cast<std::uint64_t>(key.on_device), static_cast<std::uint64_t>(choice.chunks)})
    hash = mixed(hash, part);
  if (key.what != Collective::all_to_all || key.counts.empty()) {
    hash = mixed(mixed(hash, static_cast<std::uint64_t>(key.in_place)), static_cast<std::uint64_t>(key.count));
    for (const std::int64_t count : key.counts) hash = mixed(hash, static_cast<std::uint64_t>(count));
  }
  for (const char letter : choice.algorithm) hash = mixed(hash, static_cast<std::uint64_t>(letter));
  return hash | 1;  // 0 says that nothing is compared
}

std::string words_for(const Key& key, const Choice& choice) {
  std::string words = fmt::format("{} of {} {}", name_of(key.what), key.count, name_of(key.dtype));
  if (reduces(key.what)) words += fmt::format(", {}", redop_names[static_cast<std::size_t>(key.op)]);
  if (has_root(key.what)) words += fmt::format(", root {}", key.root);
  words += ", " + choice.algorithm;
  if (choice.chunks > 1) words += fmt::format(" in {} chunks", choice.chunks);
  return words + (key.in_place ? ", in place" : "") + (key.on_device ? ", on a device" : "");
}

// On all ranks alike. Where each knows only its own counts of an uneven all_to_all, what asks for more than any counts is out.
bool fits_everywhere(const Algorithm& algorithm, const Plan& plan, bool counts_differ) {
  if (!plan.problems.empty())
    return std::ranges::all_of(plan.problems, [&](const Problem& problem) { return fits(algorithm, problem); });
  return counts_differ ? algorithm.fits == nullptr : fits(algorithm, plan.problem);
}

}  // namespace

std::vector<Schedule> schedules_of(const Plan& plan) {
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < plan.problem.size; ++rank) {
    const Problem problem = plan.problems.empty() ? plan.problem.at(rank) : plan.problems[static_cast<std::size_t>(rank)];
    ranks.push_back(cut_into_chunks(plan.algorithm->plan(problem), plan.chunks));
  }
  return ranks;
}

Choice Communicator::State::choose(const Key& key, const Problem& problem) const {
  const auto choice = chosen.find(problem.what);
  if (!key.is_ours && choice != chosen.end() && choice->second.algorithm != "auto") return choice->second;
  if (problem.what == Collective::all_to_all && !key.counts.empty())
    return {"direct", 1, "each rank knows its own counts, and all must choose alike"};
  return world->selector->choose(world->transport->name(), problem, problem.blocks.total() * size_of(key.dtype),
                                 native_agrees(problem, key.dtype, key.op));
}

// On memory that is mapped each rank must know all counts, not only its own, and who works in place: so they are exchanged first, and
// all of them are the key. A row a rank: what it gives to each, what it takes from each, whether in place.
std::vector<std::int64_t> Communicator::State::everybodys_counts(const Call& call, bool in_place) {
  std::vector<std::int64_t> mine(call.counts.begin(), call.counts.end());
  mine.insert(mine.end(), call.taken.begin(), call.taken.end());
  mine.push_back(in_place);
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(size()));
  run_ours({Collective::all_gather,
            {mine.data(), static_cast<std::int64_t>(mine.size()), DType::i64},
            {all.data(), static_cast<std::int64_t>(all.size()), DType::i64}});
  const auto p = static_cast<std::size_t>(size());
  for (std::size_t from = 0; from < p; ++from)
    for (std::size_t to = 0; to < p; ++to) {
      const std::int64_t given = all[from * mine.size() + to], taken = all[to * mine.size() + p + from];
      require(given == taken, "all_to_all on rank {}: rank {} gives {} elements to rank {}, which takes {}", rank(), from,
              given, to, taken);
    }
  return all;
}

const std::shared_ptr<Route>& Communicator::State::route_of(const Call& call) {
  const int p = size();
  require(call.root >= 0 && call.root < p, "{} on rank {}: root {} is none of {} ranks", name_of(call.what), rank(),
          call.root, p);
  require(call.counts.empty() || static_cast<int>(call.counts.size()) == p, "{} on rank {}: {} counts for {} ranks",
          name_of(call.what), rank(), call.counts.size(), p);
  require(call.taken.size() == (call.what == Collective::all_to_all ? call.counts.size() : 0),
          "{} on rank {}: {} counts are given, {} are taken", name_of(call.what), rank(), call.counts.size(),
          call.taken.size());
  const std::int64_t total = total_of(call, p);
  const Slice& typed = call.input.count > 0 ? call.input : call.output;
  refuse_mixed(call, rank());
  Key key{call.what, call.what == Collective::barrier ? DType::u8 : typed.dtype,
          call.op,   is_in_place(call, rank(), p, total),
          call.root, !typed.device.is_host(),
          is_ours_,  total,
          {}};
  if (!call.counts.empty()) {
    key.counts.assign(call.counts.begin(), call.counts.end());
    if (call.what == Collective::all_to_all) {
      if (world->transport->plans_for_all())
        key.counts = everybodys_counts(call, key.in_place);
      else
        key.counts.insert(key.counts.end(), call.taken.begin(), call.taken.end());
    }
  }
  if (!last_key || *last_key != key) {
    auto found = routes.find(key);
    if (found == routes.end()) {
      auto route = plan_route(key);
      if (routes.size() >= most_routes) routes.clear();
      found = routes.emplace(key, std::move(route)).first;
    }
    last_key = &found->first;
    last_route = found->second;
  }
  check_buffers(call, last_route->plan.problem);
  return last_route;
}

std::shared_ptr<Route> Communicator::State::plan_route(const Key& key) {
  Plan plan;
  plan.dtype = key.dtype;
  plan.op = key.op;
  plan.on_device = key.on_device;
  if (plan.on_device && !world->device)
    throw Error(Exit::runtime, fmt::format("{} on rank {} has buffers on a device", name_of(key.what), rank()),
                fmt::format("the backend {} reaches host memory, and nobody was named who copies", world->transport->name()),
                "call use_device(memory of the device) on the communicator first");
  const bool counts_differ = key.what == Collective::all_to_all && !key.counts.empty();
  const bool all_known = counts_differ && world->transport->plans_for_all();
  const std::size_t row = all_known ? 2 * static_cast<std::size_t>(size()) + 1 : 0;
  for (int r = 0; r < (all_known ? size() : 0); ++r)
    plan.problems.push_back(problem_of(key, Counts(key.counts).subspan(static_cast<std::size_t>(r) * row, row), r, size()));
  plan.problem = all_known ? plan.problems[static_cast<std::size_t>(rank())] : problem_of(key, key.counts, rank(), size());
  plan.problem.ranks_per_node = ranks_per_node;
  for (Problem& problem : plan.problems) problem.ranks_per_node = ranks_per_node;

  const Choice choice = choose(key, plan.problem);
  const std::string& name = choice.algorithm;
  plan.chunks = choice.chunks;
  plan.words = is_pair ? fmt::format("message of {} {}", key.count, name_of(key.dtype)) : words_for(key, choice);
  if (check) plan.signature = signature_of(key, choice);
  plan.divide = key.op == Redop::avg && reduces(key.what);
  if (key.op == Redop::avg) plan.op = Redop::sum;
  if (name == "native") {
    if (!world->transport->has_native(key.what))
      usage_error(fmt::format("{} has no native {}", world->transport->name(), name_of(key.what)),
                  fmt::format("{} ranks, {}", size(), plan.words), "choose another algorithm, or the backend mpi");
    return std::make_shared<Route>(Route{std::move(plan), choice, {}, -1});
  }
  plan.algorithm = find_algorithm(key.what, name);
  if (!plan.algorithm || !fits_everywhere(*plan.algorithm, plan, counts_differ))
    usage_error(fmt::format("{} {} does not fit", name_of(key.what), name), fmt::format("{} ranks, {}", size(), plan.words),
                "choose another algorithm, or auto");
  const std::int64_t sent = plan.algorithm->plan(plan.problem).elements_sent() * size_of(key.dtype);
  return std::make_shared<Route>(Route{std::move(plan), choice, {}, sent});
}

}  // namespace chorale
