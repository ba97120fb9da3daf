#include "collectives/flight.hpp"

#include <tuple>

namespace chorale {

Engine::Engine(Clock& clock, bool oversubscribed)
    : free_ids(1024, 1),
      waiting_{.clock = clock, .timeout_seconds = 600, .spins = oversubscribed ? 0 : 2000, .on_idle = [this] { examine(); }},
      briefly_(waiting_) {
  briefly_.timeout_seconds = 2;
}

void Engine::progress() {
  for (std::size_t f = 0; f < flights_.size();) {
    Request::Flight& flight = *flights_[f];
    flight.group->move(flight);
    if (flight.over)
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(f));
    else
      ++f;
  }
}

// Trouble of flights is kept for who waits for them, that of a blocked call is for now.
void Engine::examine() {
  for (Request::Flight* flight : flights_) try {
      if (flight->operation) flight->operation->examine();
    } catch (...) {
      flight->trouble = std::current_exception();  // `move` takes it out of the air
    }
  if (blocked_) blocked_->examine();
}

Communicator::State::~State() {
  if (!is_pair && engine) engine->free_ids[membership.id] = 1;
}

std::unique_ptr<Operation> Communicator::State::operation_of(Route& route) {
  if (route.free.empty()) return group->prepare(route.plan);
  auto operation = std::move(route.free.back());
  route.free.pop_back();
  return operation;
}

std::pair<void*, void*> Communicator::State::buffers_of(const Call& call) {
  if (call.what == Collective::barrier) return {&token[0], &token[1]};
  return {call.input.data, call.output.data};
}

void Communicator::State::begin(Route& route, Operation& operation, void* input, void* output, bool blocking) {
  ++in_the_air_;
  ++traffic.calls;
  traffic.bytes_sent = route.bytes_sent < 0 || traffic.bytes_sent < 0 ? -1 : traffic.bytes_sent + route.bytes_sent;
  history_ = route.plan.signature == 0 ? 0 : (history_ + route.plan.signature) * 0x9E3779B97F4A7C15u | 1;
  operation.start({input, output, ++sequence_, history_, blocking});
}

void Communicator::State::end(Route& route, std::unique_ptr<Operation> operation, void* output) {
  --in_the_air_;
  route.free.push_back(std::move(operation));
  const Plan& plan = route.plan;
  if (plan.divide && plan.problem.output_count() > 0)
    divide(plan.dtype, output, plan.problem.output_count(), plan.problem.size);
}

void Communicator::State::run(const Call& call) try {
  Route& route = *route_of(call);
  if (queued_ > 0 || in_the_air_ >= most_in_the_air) {
    Request(launch(call)).wait();
    return;
  }
  auto operation = operation_of(route);
  const auto [input, output] = buffers_of(call);
  begin(route, *operation, input, output, true);
  if (!operation->progress())
    engine->wait(
        [&] {
          if (!engine->idle()) engine->progress();
          return operation->progress();
        },
        operation.get(), route.plan.words.c_str());
  end(route, std::move(operation), output);
} catch (const std::exception& error) {
  give_up(error.what());
  throw;
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

Request::Flight* Communicator::State::launch(const Call& call) try {
  auto flight = std::make_unique<Request::Flight>();
  flight->group = shared_from_this();
  flight->route = route_of(call);
  std::tie(flight->input, flight->output) = buffers_of(call);
  ++queued_;
  move(*flight);
  if (!flight->over) engine->add(flight.get());
  return flight.release();
} catch (const std::exception& error) {
  give_up(error.what());
  throw;
}

void Communicator::State::move(Request::Flight& flight) try {
  if (flight.over) return;
  if (flight.trouble) std::rethrow_exception(flight.trouble);
  if (!flight.operation) {
    if (in_the_air_ >= most_in_the_air) return;
    flight.operation = operation_of(*flight.route);
    --queued_;
    begin(*flight.route, *flight.operation, flight.input, flight.output, false);
  }
  if (!flight.operation->progress()) return;
  end(*flight.route, std::move(flight.operation), flight.output);
  flight.over = true;
} catch (const std::exception& error) {
  flight.trouble = std::current_exception();
  flight.over = true;
  give_up(error.what());
}

void Communicator::State::give_up(const std::string& why) noexcept {
  if (group) group->poison(why);
}

Communicator::State& Communicator::State::pair(int from, int to) {
  auto& pair = pairs[{from, to}];
  if (!pair) {
    pair = std::make_shared<State>();
    pair->engine = engine;
    pair->transport = transport;
    pair->ledger = ledger;
    pair->allocator = allocator;
    pair->membership = {
        {membership.members[static_cast<std::size_t>(from)], membership.members[static_cast<std::size_t>(to)]},
        rank() == from ? 0 : 1,
        membership.id,
        {}};
    pair->is_pair = true;
    pair->check = check;
    pair->group = group->pair(from, to);
  }
  return *pair;
}

}  // namespace chorale
