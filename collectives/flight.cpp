#include "collectives/flight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <tuple>

#include "collectives/staged_operation.hpp"
#include "src/base/error.hpp"
#include "src/base/progress_hook.hpp"
#include "src/base/text.hpp"

namespace chorale {

namespace {

// The results of calls that differ are wrong, and a destructor cannot throw.
[[noreturn]] void end_rank(const std::exception& error, const Transport& transport) {
  fmt::print(stderr, "{}", describe(error, transport.rank(), transport.size()));
  std::fflush(nullptr);
  std::_Exit(exit_code_of(error));
}

bool is_on_device(const Call& call) { return !(call.input.count > 0 ? call.input : call.output).device.is_host(); }

}  // namespace

Engine::Engine(Clock& clock, bool oversubscribed, double timeout_seconds)
    : waiting_{.clock = clock,
               .timeout_seconds = timeout_seconds,
               .spins = oversubscribed ? 0 : 2000,
               .on_idle = [this] { examine(); },
               .moved = [this] { return moved(); },
               .fix = "a peer is slow, stopped or gone; CHORALE_TIMEOUT=SECONDS sets another limit"},
      briefly_(waiting_) {
  briefly_.timeout_seconds = 2;
}

std::vector<Request::PendingCall*> Engine::flights_of(const Communicator::State* group) const {
  std::vector<Request::PendingCall*> found;
  std::ranges::copy_if(flights_, std::back_inserter(found),
                       [&](const Request::PendingCall* flight) { return flight->group.get() == group && !flight->over; });
  return found;
}

// Changes whenever a step of any call is done.
std::uint64_t Engine::moved() const {
  std::uint64_t steps = blocked_ ? blocked_->moved() : 0;
  for (const Request::PendingCall* flight : flights_)
    if (flight->operation) steps += flight->operation->moved();
  return steps;
}

void Engine::progress() {
  for (std::size_t f = 0; f < flights_.size();) {
    Request::PendingCall& flight = *flights_[f];
    flight.group->move(flight);
    if (flight.over)
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(f));
    else
      ++f;
  }
}

void Engine::poll() {
  constexpr std::uint64_t patience = 256;
  progress();
  if (flights_.empty() || ++polls_ % patience != 0) return;
  run_progress_hooks();
  examine();
}

// Trouble of flights is kept for who waits for them, that of a blocked call is for now.
void Engine::examine() {
  for (Request::PendingCall* flight : flights_) try {
      if (flight->sequence != 0 && flight->operation) flight->operation->examine();
    } catch (...) {
      flight->trouble = std::current_exception();  // `move` takes it out of the air
    }
  if (blocked_) blocked_->examine();
}

World::World(std::shared_ptr<Transport> joined, Clock& its_clock)
    : clock(its_clock),
      transport(std::move(joined)),
      allocator(transport->memory(), ledger),
      device(!transport->reaches(false, false) ? std::shared_ptr<Memory>(transport, &transport->memory()) : nullptr),
      selector(std::make_shared<Selector>()),
      free_ids(1024, 1) {}

// The newest calls of ranks may differ without one having waited for another. Whoever leaves last hears of it, so it listens for farewells
// that may be under way. Ranks that stay longer than this rank listens hear its farewell.
World::~World() {
  constexpr double patience_seconds = 2;
  if (std::uncaught_exceptions() > 0) return;
  try {
    const double until = clock.seconds() + patience_seconds;
    for (; !transport->all_left() && clock.seconds() < until; clock.sleep(1e-3)) run_progress_hooks();
  } catch (const std::exception& error) {
    end_rank(error, *transport);
  }
}

// A group that gave up keeps its id: what is said of it may still be on its way, and must not reach another group.
Communicator::State::~State() {
  if (!world || !gave_up_.empty()) return;
  if (!is_pair) world->free_ids[membership.id] = 1;
  pairs.clear();  // a rank leaves its pairs before their parent
  if (group) try {
      group->leave();
    } catch (const std::exception& error) {
      if (std::uncaught_exceptions() == 0) end_rank(error, *world->transport);
    }
}

std::unique_ptr<Operation> Communicator::State::operation_of(Route& route) {
  if (route.free.empty()) {
    if (world->transport->reaches(route.plan.on_device, !route.plan.algorithm)) return group->prepare(route.plan);
    return std::make_unique<StagedOperation>(*group, route.plan, world->device, world->allocator);
  }
  auto operation = std::move(route.free.back());
  route.free.pop_back();
  return operation;
}

std::pair<void*, void*> Communicator::State::buffers_of(const Call& call) {
  if (call.what == Collective::barrier) return {&token[0], &token[1]};
  return {call.input.data, call.output.data};
}

std::uint64_t Communicator::State::begin(Route& route, Operation& operation, void* input, void* output, bool blocking) {
  history_ = route.plan.signature == 0 ? 0 : (history_ + route.plan.signature) * 0x9E3779B97F4A7C15u | 1;
  operation.start({input, output, ++sequence_, history_, blocking});
  return sequence_;
}

void Communicator::State::end(Route& route, std::unique_ptr<Operation> operation, std::uint64_t sequence, void* output) {
  over_ |= std::uint64_t{1} << (sequence - oldest_);
  for (; over_ & 1; over_ >>= 1) ++oldest_;
  route.free.push_back(std::move(operation));
  const Plan& plan = route.plan;
  if (plan.divide && !plan.on_device && plan.problem.output_count() > 0)
    divide(plan.dtype, output, plan.problem.output_count(), plan.problem.size);
}

void Communicator::State::count(const Route& route) {
  ++traffic.calls;
  traffic.bytes_sent = route.bytes_sent < 0 || traffic.bytes_sent < 0 ? -1 : traffic.bytes_sent + route.bytes_sent;
}

void Communicator::State::run(const Call& call) try {
  refuse_after_giving_up();
  if (awaits_input(call)) return Request(launch(call)).wait();
  const std::shared_ptr<Route> route = route_of(call);
  count(*route);
  if (!queue_.empty() || !may_begin())
    Request(launch(route, call)).wait();
  else
    fly(route, call);
} catch (const std::exception& error) {
  give_up(error);
  throw;
}

// A call that begins at once and is waited for. Others of the group move meanwhile; if one fails, give_up() abandons this one too.
void Communicator::State::fly(const std::shared_ptr<Route>& route, const Call& call) {
  flown_ = operation_of(*route);
  Operation& operation = *flown_;
  const auto [input, output] = buffers_of(call);
  std::uint64_t sequence = 0;
  try {
    sequence = begin(*route, operation, input, output, native_blocks);
    if (!operation.progress())
      engine->wait(
          [&] {
            if (!engine->idle()) engine->progress();
            refuse_after_giving_up();
            return operation.progress();
          },
          &operation, route->plan.words.c_str());
  } catch (...) {
    if (flown_) abandoned_.add(std::move(flown_));
    throw;
  }
  end(*route, std::move(flown_), sequence, output);
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

// Every element that these give depends on the same element of the inputs alone, so pieces can be calls of their own. Those that are in
// flight at once overlap the copies of one with the messages of another, and their stand-ins are all the memory it takes.
std::vector<Call> Communicator::State::pieces_of(const Call& call) const {
  const Slice& vector = call.input.count > 0 ? call.input : call.output;
  const std::int64_t each = staged_piece_bytes / size_of(vector.dtype);
  const bool can_be_cut =
      call.what == Collective::all_reduce || call.what == Collective::reduce || call.what == Collective::broadcast;
  if (!can_be_cut || !is_staged(call) || vector.count <= each) return {call};
  std::vector<Call> pieces;
  for (std::int64_t first = 0; first < vector.count; first += each) {
    Call piece = call;
    for (Slice* slice : {&piece.input, &piece.output})  // who is not the root may have none
      if (slice->count > 0) *slice = slice->narrow(first, std::min(each, vector.count - first));
    pieces.push_back(piece);
  }
  return pieces;
}

// Buffers that are not where the transport is at home: what is asked of a device for them must have been done before the call starts.
bool Communicator::State::awaits_input(const Call& call) const {
  return is_on_device(call) == world->transport->reaches(false, false);
}

bool Communicator::State::is_staged(const Call& call) const { return !world->transport->reaches(is_on_device(call), false); }

Request::PendingCall* Communicator::State::launch(const Call& call, std::shared_ptr<State> parent) try {
  refuse_after_giving_up();
  const std::vector<Call> pieces = pieces_of(call);
  std::vector<std::shared_ptr<Route>> routes;  // all that can be refused is, before the first begins
  for (const Call& piece : pieces) routes.push_back(route_of(piece));
  Request::PendingCall* first = nullptr;
  Request::PendingCall** place = &first;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    count(*routes[i]);
    *place = launch(routes[i], pieces[i]);
    (*place)->parent = parent;
    place = &(*place)->next_piece;
  }
  return first;
} catch (const std::exception& error) {
  give_up(error);
  throw;
}

Request::PendingCall* Communicator::State::launch(std::shared_ptr<Route> route, const Call& call) {
  auto flight = std::make_unique<Request::PendingCall>();
  flight->group = shared_from_this();
  flight->route = std::move(route);
  std::tie(flight->input, flight->output) = buffers_of(call);
  queue_.push_back(flight.get());
  move(*flight);
  if (!flight->over) engine->add(flight.get());
  return flight.release();
}

void Communicator::State::move(Request::PendingCall& flight) try {
  if (flight.over) return;
  if (flight.trouble) std::rethrow_exception(flight.trouble);
  if (flight.sequence == 0 && !begin(flight)) return;
  if (!flight.operation->progress()) return;
  end(*flight.route, std::move(flight.operation), flight.sequence, flight.output);
  flight.over = true;
} catch (const std::exception& error) {
  flight.trouble = std::current_exception();
  abandon(flight);
  give_up(error);
}

// Several may await their inputs at once, but they begin in the order of their calls.
bool Communicator::State::begin(Request::PendingCall& flight) {
  refuse_after_giving_up();
  if (!flight.operation) {
    if (!may_begin()) return false;
    flight.operation = operation_of(*flight.route);
    ++awaiting_;
    flight.operation->await_input(flight.input);
  }
  if (queue_.front() != &flight || !flight.operation->input_is_there()) return false;
  flight.sequence = begin(*flight.route, *flight.operation, flight.input, flight.output, false);
  queue_.pop_front();
  --awaiting_;
  return true;
}

void Communicator::State::abandon(Request::PendingCall& flight) {
  if (flight.sequence == 0) std::erase(queue_, &flight);
  if (flight.sequence == 0 && flight.operation) --awaiting_;
  if (flight.operation) abandoned_.add(std::move(flight.operation));
  flight.over = true;
}

// What a caller got wrong on all ranks alike (an algorithm that does not fit) leaves the group as it was. Otherwise no call of the group goes on:
// peers that hear of this answer none of them.
void Communicator::State::give_up(const std::exception& error) noexcept {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (!group || !gave_up_.empty() || (known && known->exit() == Exit::usage)) return;
  gave_up_ = replace_all(error.what(), '\n', ';');
  for (Request::PendingCall* flight : engine->flights_of(this)) try {
      abandon(*flight);
      refuse_after_giving_up();
    } catch (...) {
      flight->trouble = std::current_exception();
    }
  if (flown_) abandoned_.add(std::move(flown_));
  abandoned_.let_go(*group, engine->clock(), gave_up_);
}

void Communicator::State::refuse_after_giving_up() const {
  if (!gave_up_.empty()) [[unlikely]]
    throw Error(Exit::runtime, fmt::format("rank {} gave up on this group", rank()), gave_up_,
                "mend what is said there; this group can do nothing more");
}

Communicator::State& Communicator::State::pair(int from, int to) {
  auto& pair = pairs[{from, to}];
  if (!pair) {
    pair = std::make_shared<State>();
    pair->engine = engine;
    pair->world = world;
    pair->membership = {
        {membership.members[static_cast<std::size_t>(from)], membership.members[static_cast<std::size_t>(to)]},
        rank() == from ? 0 : 1,
        membership.id,
        {}};
    pair->is_pair = true;
    pair->check = check;
    pair->chosen[Collective::broadcast] = {world->transport->plans_for_all() ? "direct" : "binomial_tree", 1,
                                           "it is a message"};
    pair->group = group->pair(from, to);
  }
  return *pair;
}

}  // namespace chorale
