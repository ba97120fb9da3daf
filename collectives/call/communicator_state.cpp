#include "collectives/call/communicator_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/call/staged_operation.hpp"
#include "collectives/transport/call_errors.hpp"
#include "src/base/error.hpp"
#include "src/base/hash.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

bool is_on_device(const Call& call) { return !(call.input.count > 0 ? call.input : call.output).device.is_host(); }

// Returns the rows of the key (see everybodys_counts) for a call that is out of place on all ranks.
std::vector<std::int64_t> rows_of_key(Counts everybodys, int size) {
  const auto p = static_cast<std::size_t>(size);
  std::vector<std::int64_t> rows;
  rows.reserve(p * (2 * p + 1));
  for (std::size_t rank = 0; rank < p; ++rank) {
    for (std::size_t to = 0; to < p; ++to) rows.push_back(everybodys[rank * p + to]);
    for (std::size_t from = 0; from < p; ++from) rows.push_back(everybodys[from * p + rank]);
    rows.push_back(0);
  }
  return rows;
}

}  // namespace

// If this rank gave up on the group, the group's id is not used again. Messages of the group could still be in flight, and
// these messages must not reach a later group.
Communicator::State::~State() {
  if (!gave_up_.empty()) return;
  if (!is_pair) world->free_ids[membership.id] = 1;
  pairs.clear();  // destroyed first, because a rank must leave its pairs before it leaves the parent group
  if (group) try {
      group->leave();
    } catch (const std::exception& error) {
      if (std::uncaught_exceptions() == 0) end_rank(error, *world);
    }
}

std::unique_ptr<Operation> Communicator::State::operation_of(Route& route) {
  if (route.free.empty()) {
    if (world->transport->reaches(route.plan.on_device, !route.plan.algorithm)) return group->prepare(route.plan);
    return staged_operation(*group, route.plan, world->device, world->allocator);
  }
  auto operation = std::move(route.free.back());
  route.free.pop_back();
  return operation;
}

// In a collective with a root, only the root needs both buffers. All other ranks ignore either the input or the output. The
// ignored buffer may have any type, device and size. This function replaces the ignored buffer. If the call is in place, the
// ignored buffer becomes equal to the used buffer. If the call is out of place, the ignored buffer becomes an empty buffer
// with the type and device of the used buffer.
Call Communicator::State::used(Call call) const {
  if (!has_root(call.what) || rank() == call.root) return call;
  const bool gives = call.what == Collective::reduce || call.what == Collective::gather;
  const Slice& uses = gives ? call.input : call.output;
  Slice& ignored = gives ? call.output : call.input;
  const void* const place = ignored.data;
  ignored = uses;
  if (place != uses.data) {
    ignored.data = nullptr;
    ignored.count = 0;
  }
  return call;
}

void Communicator::State::run(const Call& given) try {
  refuse_after_giving_up();
  if (!is_ours_)
    if (Route* const route = routes.repeated(given)) return run(*route, given.input.data, given.output.data);
  const Call call = used(given);
  if (awaits_input(call)) return Request(launch(call)).wait();
  Route& route = *route_of(call);
  const bool uses_both = call.input.data == given.input.data && call.output.data == given.output.data;
  if (!is_ours_ && uses_both) routes.remember(given);
  run(route, call.input.data, call.output.data);
} catch (const std::exception& error) {
  give_up(error);
  throw;
}

// A blocking call keeps its route alive without a reference count, because no other call is planned meanwhile.
void Communicator::State::run(Route& route, void* input, void* output) {
  Request::PendingCall pending{.group = this,
                               .route = std::shared_ptr<Route>(std::shared_ptr<Route>(), &route),
                               .blocking = native_blocks && queue_.empty()};
  struct Forgotten {
    Request::PendingCall& pending;
    ~Forgotten() {
      pending.group->engine->remove(&pending);
      if (!pending.over) pending.group->abandon(pending);
    }
  } const at_the_end{pending};
  enqueue(pending, input, output);
  engine->finish(pending, false);
}

void Communicator::State::run_ours(const Call& call) {
  is_ours_ = true;
  try {
    run(call);
  } catch (...) {
    is_ours_ = false;
    throw;
  }
  is_ours_ = false;
}

// Splits a call whose buffers are staged (staged_operation.hpp) into segments. In all_reduce, reduce and broadcast, each
// output element depends only on the same element of the inputs, so the segments can be separate calls. While several
// segments are in flight, the copies of one segment overlap the messages of other segments. Only segments in flight need
// bounce buffers.
std::vector<Call> Communicator::State::pieces_of(const Call& call) const {
  const Slice& vector = call.input.count > 0 ? call.input : call.output;
  const std::int64_t each = staged_piece_bytes / size_of(vector.dtype);
  const bool can_be_cut =
      call.what == Collective::all_reduce || call.what == Collective::reduce || call.what == Collective::broadcast;
  if (!can_be_cut || !is_staged(call) || vector.count <= each) return {call};
  std::vector<Call> pieces;
  for (std::int64_t first = 0; first < vector.count; first += each) {
    Call piece = call;
    for (Slice* slice : {&piece.input, &piece.output})  // an ignored buffer is empty, so it is not split
      if (slice->count > 0) *slice = slice->narrow(first, std::min(each, vector.count - first));
    pieces.push_back(piece);
  }
  return pieces;
}

// Whether a call must wait for the device before it starts. If the transport works on the host, as mpi does, a call on
// device buffers waits for the earlier device work. If the transport works on devices, as nccl does, a call on host buffers
// waits until its input is on the device.
bool Communicator::State::awaits_input(const Call& call) const {
  return is_on_device(call) == world->transport->reaches(false, false);
}

bool Communicator::State::is_staged(const Call& call) const { return !world->transport->reaches(is_on_device(call), false); }

Request::PendingCall* Communicator::State::launch(const Call& given, std::shared_ptr<State> parent) try {
  refuse_after_giving_up();
  const std::vector<Call> pieces = pieces_of(used(given));
  std::vector<std::shared_ptr<Route>> planned;  // planning can throw, so all segments are planned before the first begins
  for (const Call& piece : pieces) planned.push_back(route_of(piece));
  Request::PendingCall* first = nullptr;
  Request::PendingCall** place = &first;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto pending = std::make_unique<Request::PendingCall>(
        Request::PendingCall{.keeps_parent = parent, .keeps_group = shared_from_this(), .group = this, .route = planned[i]});
    enqueue(*pending, pieces[i].input.data, pieces[i].output.data);
    *place = pending.release();
    place = &(*place)->next_piece;
  }
  return first;
} catch (const std::exception& error) {
  give_up(error);
  throw;
}

void Communicator::State::enqueue(Request::PendingCall& pending, void* input, void* output) {
  const auto add = [](std::int64_t& sum, std::int64_t bytes) { sum = bytes < 0 || sum < 0 ? -1 : sum + bytes; };
  ++traffic.calls;
  add(traffic.bytes_sent, pending.route->bytes_sent);
  add(traffic.bytes_crossing, pending.route->bytes_crossing);
  const bool is_barrier = pending.route->plan.problem.what == Collective::barrier;
  pending.input = is_barrier ? &token_[0] : input;
  pending.output = is_barrier ? &token_[1] : output;
  queue_.push_back(&pending);
  if (Flight* const flight = engine->flight()) flight->calls(in_flight_, sequence_ + queue_.size());
  move(pending);
  if (!pending.over) engine->add(&pending);
}

void Communicator::State::move(Request::PendingCall& call) try {
  if (call.over) return;
  if (call.trouble) std::rethrow_exception(call.trouble);
  if (call.sequence == 0 && !begin(call)) return;
  if (call.operation->progress()) end(call);
} catch (const std::exception& error) {
  call.trouble = std::current_exception();
  abandon(call);
  give_up(error);
}

// Several calls can wait for their inputs at the same time, but calls begin in call order.
bool Communicator::State::begin(Request::PendingCall& call) {
  refuse_after_giving_up();
  if (!call.operation) {
    if (!may_begin()) return false;
    call.operation = operation_of(*call.route);
    ++awaiting_;
    call.operation->await_input(call.input);
  }
  if (queue_.front() != &call || !call.operation->input_is_there()) return false;
  const std::uint64_t signature = call.route->plan.signature;
  history_ = signature == 0 ? 0 : hash_with(history_, signature) | 1;
  call.operation->start({call.input, call.output, ++sequence_, history_, call.blocking});
  call.sequence = sequence_;
  if (Flight* const flight = engine->flight()) {
    call.ticket = flight->begin(in_flight_, sequence_, call.route->bytes, call.route->words);
  }
  queue_.pop_front();
  --awaiting_;
  return true;
}

void Communicator::State::end(Request::PendingCall& call) {
  over_ |= std::uint64_t{1} << (call.sequence - oldest_);
  for (; over_ & 1; over_ >>= 1) ++oldest_;
  call.route->free.push_back(std::move(call.operation));
  const Plan& plan = call.route->plan;
  if (plan.divide && !plan.on_device && plan.problem.output_count() > 0)
    divide(plan.dtype, call.output, plan.problem.output_count(), plan.problem.size);
  if (Flight* const flight = engine->flight()) flight->over(call.ticket, FlightCall::State::over);
  call.over = true;
}

void Communicator::State::abandon(Request::PendingCall& call) {
  if (call.sequence == 0) std::erase(queue_, &call);
  if (call.sequence == 0 && call.operation) --awaiting_;
  if (call.operation) abandoned_.add(std::move(call.operation));
  if (Flight* const flight = engine->flight(); flight && call.ticket) flight->over(call.ticket, FlightCall::State::failed);
  call.over = true;
}

// A usage error, such as an algorithm that does not fit, occurs on all ranks, and the group remains usable. After any other
// error, this rank stops all calls of the group and tells its peers, which then stop their calls too.
void Communicator::State::give_up(const std::exception& error) noexcept {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (!group || !gave_up_.empty() || (known && known->exit() == Exit::usage)) return;
  gave_up_ = replace_all(error.what(), '\n', ';');
  for (Request::PendingCall* call : engine->calls_of(this)) try {
      abandon(*call);
      refuse_after_giving_up();
    } catch (...) {
      call->trouble = std::current_exception();
    }
  // If the run is lost, the guard processes have told all ranks to end.
  const Flight* const flight = engine->flight();
  const auto lost = [&] { return flight && flight->lost(); };
  if (lost()) return abandoned_.cancel();
  abandoned_.let_go(*group, engine->clock(), gave_up_, lost);
}

int Communicator::State::launched_rank(int member) const {
  const int rank = membership.members[static_cast<std::size_t>(member)];
  return world->runtime ? world->runtime->launched_rank(rank) : rank;
}

// The mark of a group is a hash of the group's id, ranks and offers. The mark is equal on all members. Groups that exist at
// the same time have different marks.
Flight::Group Communicator::State::in_flight_recorder() const {
  if (!engine->flight()) return {};
  std::vector<int> ranks;
  std::uint64_t mark = 2 * membership.id + is_pair + 1;
  for (const std::int64_t offer : membership.offers) mark = hash_with(mark, static_cast<std::uint64_t>(offer));
  for (int member = 0; member < size(); ++member) {
    ranks.push_back(launched_rank(member));
    mark = hash_with(mark, static_cast<std::uint64_t>(ranks.back()));
  }
  return engine->flight()->enter(mark, is_pair ? fmt::format("{},{}", ranks[0], ranks[1]) : cpu_ranges(ranks));
}

void Communicator::State::refuse_after_giving_up() const {
  if (!gave_up_.empty()) [[unlikely]]
    throw_gave_up(fmt::format("rank {} gave up on this group", rank()), gave_up_);
}

Communicator::State& Communicator::State::pair(int from, int to) {
  auto& pair = pairs[{from, to}];
  if (!pair) {
    const auto& all = membership.members;
    pair = std::make_shared<State>(engine, world,
                                   Membership{{all[static_cast<std::size_t>(from)], all[static_cast<std::size_t>(to)]},
                                              rank() == from ? 0 : 1,
                                              membership.id,
                                              {}},
                                   true);
    pair->routes.check = routes.check;
    pair->routes.chosen[Collective::broadcast] = {world->transport->plans_for_all() ? "direct" : "binomial_tree", 1,
                                                  "point-to-point message"};
    pair->group = group->pair(from, to);
  }
  return *pair;
}

const std::shared_ptr<Route>& Communicator::State::route_of(const Call& call) {
  check_arguments(call, rank(), size());
  Key key = key_of(call, size(), is_one_vector(call, rank(), size()));
  key.is_ours = is_ours_;
  if (is_uneven_exchange(call) && world->transport->plans_for_all()) key.counts = everybodys_counts(call, key.in_place);
  return routes.of(call, key);
}

// On mapped memory and over NCCL, each rank must know the counts of all ranks, and must know which ranks work in place. The
// ranks exchange these data first, unless the caller passes the counts of all ranks. The call's key holds the data of all
// ranks, one row per rank. The row of a rank has the counts that the rank sends to each rank, followed by the counts that
// the rank receives from each rank. The last entry of the row says whether the rank works in place.
std::vector<std::int64_t> Communicator::State::everybodys_counts(const Call& call, bool in_place) {
  if (!call.everybodys.empty()) return rows_of_key(call.everybodys, size());
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
      require(given == taken, "all_to_all on rank {}: rank {} sends {} elements to rank {}, which expects {}", rank(), from,
              given, to, taken);
    }
  return all;
}

}  // namespace chorale
