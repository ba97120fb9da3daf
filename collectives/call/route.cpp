#include "collectives/call/route.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/chunking.hpp"
#include "src/base/error.hpp"
#include "src/base/hash.hpp"

namespace chorale {
namespace {

constexpr std::size_t most_exchanges = 16, most_others = 240;

// A buffer that is too long is an error too, because the collective would silently ignore its last elements.
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
  require(others_input || call.input.count == p.input_count(), "{} on rank {}: the input has {} elements, {} are expected",
          name, p.rank, call.input.count, p.input_count());
  require(others_output || call.output.count == p.output_count(),
          "{} on rank {}: the output has {} elements, {} are expected", name, p.rank, call.output.count, p.output_count());
  require((!gives || call.input.data) && (!gets || call.output.data), "{} on rank {}: a buffer is null", name, p.rank);
}

// Checks that the counts of all ranks contain the counts that this rank passes.
void check_everybodys(const Call& call, int rank, int size) {
  if (call.everybodys.empty()) return;
  const auto p = static_cast<std::size_t>(size), me = static_cast<std::size_t>(rank);
  require(call.counts.size() == p && call.everybodys.size() == p * p,
          "{} on rank {}: {} counts of this rank and {} counts of all ranks for {} ranks", name_of(call.what), rank,
          call.counts.size(), call.everybodys.size(), size);
  for (std::size_t other = 0; other < p; ++other)
    require(call.counts[other] == call.everybodys[me * p + other] && call.taken[other] == call.everybodys[other * p + me],
            "{} on rank {}: its counts with rank {} differ from those in the counts of all ranks", name_of(call.what), rank,
            other);
  require(call.input.count == 0 || call.input.data != call.output.data,
          "{} on rank {}: a call with the counts of all ranks cannot be in place", name_of(call.what), rank);
}

// Returns a hash of those properties of a call that must be equal on all ranks. In an uneven all_to_all, each rank has its
// own counts. in_place can differ between ranks too, because a rank that sends or receives nothing can lack a buffer.
// `all_known` says whether the key has the counts of all ranks; if so, the key must be equal on all ranks.
std::uint64_t signature_of(const Key& key, const Choice& choice, bool all_known) {
  std::uint64_t hash = 1;
  for (const std::uint64_t part : {static_cast<std::uint64_t>(key.what), static_cast<std::uint64_t>(key.dtype),
                                   static_cast<std::uint64_t>(key.op), static_cast<std::uint64_t>(key.root),
                                   static_cast<std::uint64_t>(key.on_device), static_cast<std::uint64_t>(choice.chunks)})
    hash = hash_with(hash, part);
  const bool is_uneven = is_uneven_exchange(key);
  if (!is_uneven)
    hash = hash_with(hash_with(hash, static_cast<std::uint64_t>(key.in_place)), static_cast<std::uint64_t>(key.count));
  if (!is_uneven || all_known)
    for (const std::int64_t count : key.counts) hash = hash_with(hash, static_cast<std::uint64_t>(count));
  for (const char letter : choice.algorithm) hash = hash_with(hash, static_cast<std::uint64_t>(letter));
  return hash | 1;  // never 0, because 0 means that calls are not compared
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

void check_arguments(const Call& call, int rank, int size) {
  require(call.root >= 0 && call.root < size, "{} on rank {}: root {} is not one of {} ranks", name_of(call.what), rank,
          call.root, size);
  require(call.counts.empty() || static_cast<int>(call.counts.size()) == size, "{} on rank {}: {} counts for {} ranks",
          name_of(call.what), rank, call.counts.size(), size);
  require(call.taken.size() == (call.what == Collective::all_to_all ? call.counts.size() : 0),
          "{} on rank {}: {} counts to send, {} counts to receive", name_of(call.what), rank, call.counts.size(),
          call.taken.size());
  check_everybodys(call, rank, size);
  if (call.input.count == 0 || call.output.count == 0 || call.input.device.is_host() == call.output.device.is_host()) return;
  throw Error(Exit::runtime, fmt::format("{} on rank {} mixes host and device buffers", name_of(call.what), rank),
              fmt::format("the input is on {}, the output on {}", name_of(call.input.device), name_of(call.output.device)),
              "copy one of them to where the other is");
}

const std::shared_ptr<Route>& Routes::of(const Call& call, const Key& key) {
  if (!last_key_ || *last_key_ != key) {
    const Known& known = is_uneven_exchange(key) ? find_or_plan_exchange(key) : find_or_plan(key);
    last_key_ = &known.first;
    last_ = known.second;
  }
  check_buffers(call, last_->plan.problem);
  return last_;
}

Routes::Arguments Routes::arguments_of(const Call& call) const {
  return {call.what,
          call.op,
          call.root,
          is_one_vector(call, rank(), size()),
          {call.input.count, call.output.count},
          {call.input.dtype, call.output.dtype},
          {call.input.device, call.output.device},
          {call.input.data != nullptr, call.output.data != nullptr}};
}

Route* Routes::repeated(const Call& call) const {
  const bool has_counts = !call.counts.empty() || !call.taken.empty() || !call.everybodys.empty();
  if (!remembered_ || has_counts || *remembered_ != arguments_of(call)) return nullptr;
  return remembered_route_.get();
}

void Routes::remember(const Call& call) {
  if (!call.counts.empty()) return;
  remembered_ = arguments_of(call);
  remembered_route_ = last_;
}

const Routes::Known& Routes::find_or_plan(const Key& key) {
  const auto found = known_.find(key);
  if (found != known_.end()) return *found;
  auto route = planned(key);
  if (known_.size() >= most_others) known_.clear();
  return *known_.emplace(key, std::move(route)).first;
}

// Calls in flight keep their routes alive, so the table may drop a route at any time.
const Routes::Known& Routes::find_or_plan_exchange(const Key& key) {
  const auto found = std::ranges::find(exchanges_, key, &Known::first);
  if (found != exchanges_.end()) return *found;
  auto route = planned(key);
  if (exchanges_.size() >= most_exchanges) exchanges_.pop_front();
  return exchanges_.emplace_back(key, std::move(route));
}

void Routes::forget() {
  known_.clear();
  exchanges_.clear();
  last_key_ = nullptr;
  last_.reset();
  remembered_.reset();
  remembered_route_.reset();
}

std::shared_ptr<Route> Routes::planned(const Key& key) const {
  Plan plan;
  plan.dtype = key.dtype;
  plan.op = key.op;
  plan.on_device = key.on_device;
  if (plan.on_device && !world_.device)
    throw Error(
        Exit::runtime, fmt::format("{} on rank {} has buffers on a device", name_of(key.what), rank()),
        fmt::format("the backend {} reaches only host memory, and use_device was not called", world_.transport->name()),
        "call use_device(memory of the device) on the communicator first");
  const bool all_known = is_uneven_exchange(key) && world_.transport->plans_for_all();
  const std::size_t row = all_known ? 2 * static_cast<std::size_t>(size()) + 1 : 0;
  for (int r = 0; r < (all_known ? size() : 0); ++r)
    plan.problems.push_back(
        problem_of(key, Counts(key.counts).subspan(static_cast<std::size_t>(r) * row, row), r, size(), hosts));
  plan.problem =
      all_known ? plan.problems[static_cast<std::size_t>(rank())] : problem_of(key, key.counts, rank(), size(), hosts);

  Decision decision = decide(key, plan.problem, plan.problems, {world_.transport->name(), *world_.selector, chosen});
  plan.algorithm = decision.algorithm;
  plan.chunks = decision.choice.chunks;
  plan.words = is_pair_ ? fmt::format("message of {} {}", key.count, name_of(key.dtype)) : words_for(key, decision.choice);
  if (check) plan.signature = signature_of(key, decision.choice, all_known);
  plan.divide = key.op == Redop::avg && reduces(key.what);
  if (key.op == Redop::avg) plan.op = Redop::sum;
  if (!plan.algorithm && !world_.transport->has_native(key.what))
    usage_error(fmt::format("{} has no native {}", world_.transport->name(), name_of(key.what)),
                fmt::format("{} ranks, {}", size(), plan.words), "choose another algorithm, or the backend mpi");
  const std::int64_t count = std::max(plan.problem.input_count(), plan.problem.output_count());
  const FlightWords words = flight_words(plan.words);
  return std::make_shared<Route>(Route{std::move(plan),
                                       std::move(decision.choice),
                                       {},
                                       decision.bytes_sent,
                                       decision.bytes_crossing,
                                       count * size_of(key.dtype),
                                       words});
}

}  // namespace chorale
