#include "collectives/communicator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "collectives/backends/backends.hpp"
#include "collectives/flight.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {

// ── requests ──

Request::Request(Request&& other) noexcept : pending_(std::exchange(other.pending_, nullptr)) {}

Request& Request::operator=(Request&& other) noexcept {
  std::swap(pending_, other.pending_);
  return *this;
}

bool Request::test() {
  if (!pending_) return true;
  pending_->group->engine->poll();
  while (pending_ && pending_->over) wait_for_first(false);
  return !pending_;
}

void Request::wait() { wait(false); }

void Request::wait(bool briefly) {
  while (pending_) wait_for_first(briefly);
}

// Waits for the next piece of this call. If one fails, the rest are abandoned.
void Request::wait_for_first(bool briefly) try {
  Engine& engine = *pending_->group->engine;
  const auto done = [&] {
    engine.progress();
    return pending_->over;
  };
  if (!pending_->over) try {
      engine.wait(done, nullptr, pending_->route->plan.words.c_str(), briefly);
    } catch (const std::exception& error) {
      pending_->group->give_up(error);
      throw;
    }
  if (pending_->trouble) std::rethrow_exception(pending_->trouble);
  const std::unique_ptr<PendingCall> ended(std::exchange(pending_, pending_->next_piece));
} catch (...) {
  forget();
  throw;
}

void Request::forget() {
  while (pending_) {
    const std::unique_ptr<PendingCall> lost(std::exchange(pending_, pending_->next_piece));
    lost->group->engine->remove(lost.get());
    if (!lost->over) lost->group->abandon(*lost);
  }
}

// Its buffers are about to go while peers may still read and write them. If it does not end there is no way on for this rank; while an
// error flies that is soon, so that the error is heard of too.
Request::~Request() {
  if (!pending_) return;
  try {
    wait(std::uncaught_exceptions() > 0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: a request that was never waited for failed\n  {}\n  wait() for every request\n",
               error.what());
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(Exit::runtime));
  }
}

// ── communicators ──

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator::State& Communicator::state() const {
  if (!state_) [[unlikely]]
    throw Error(Exit::runtime, "this communicator is empty",
                "it was moved from, or split() was given a negative color on this rank",
                "call the one it was moved to, or test `if (communicator)` first");
  return *state_;
}

int Communicator::rank() const { return state().rank(); }
int Communicator::size() const { return state().size(); }
std::string Communicator::backend() const { return state().world->transport->name(); }
Transport& Communicator::transport() const { return *state().world->transport; }
Allocator& Communicator::allocator() const { return state().world->allocator; }
Clock& Communicator::clock() const { return state().engine->clock(); }
const Traffic& Communicator::traffic() const { return state().traffic; }

void Communicator::forget_routes() {
  state().routes.clear();
  state().last_key = nullptr;
  state().last_route.reset();
}

void Communicator::choose(Collective what, const std::string& algorithm, int chunks) {
  std::vector<std::string> known{"auto", "native"};
  for (const Algorithm& row : all_algorithms())
    if (row.what == what) known.push_back(row.name);
  if (std::find(known.begin(), known.end(), algorithm) == known.end())
    usage_error(fmt::format("no {} is called \"{}\"", name_of(what), algorithm), "there are " + join(known, ", "),
                "choose one of these");
  require(chunks >= 1, "a schedule cannot be cut into {} chunks", chunks);
  state().chosen[what] = {algorithm, chunks, "it was asked for"};
  forget_routes();
}

void Communicator::choose(const std::string& algorithm) {
  for (auto& [what, choice] : requested_everywhere(algorithm)) state().chosen[what] = choice;
  forget_routes();
}

void Communicator::check_calls(bool on) {
  state().check = on;
  for (const auto& [ranks, pair] : state().pairs) Communicator(pair).check_calls(on);
  forget_routes();
}

void Communicator::block_in_native(bool on) { state().native_blocks = on; }

void Communicator::pretend_nodes(int ranks) {
  state().ranks_per_node = ranks;
  forget_routes();
}

void Communicator::go_by(std::shared_ptr<const Selector> selector) {
  state().world->selector = std::move(selector);
  forget_routes();
}

std::shared_ptr<const Selector> Communicator::selector() const { return state().world->selector; }

void Communicator::use_device(std::shared_ptr<Memory> device) {
  state().world->transport->use_device(device);
  state().world->device = std::move(device);
  forget_routes();
}

void Communicator::give_up(const std::exception& why) {
  state().give_up(why);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    state().pair(rank(), peer).give_up(why);
    state().pair(peer, rank()).give_up(why);
  }
}

Choice Communicator::choice(const Call& call) const { return state().route_of(call)->choice; }

void Communicator::run(const Call& call) { state().run(call); }
Request Communicator::start(const Call& call) { return Request(state().launch(call)); }

void Communicator::poll() const { state().engine->poll(); }

Request Communicator::start_send(Slice x, int to) {
  require(to >= 0 && to < size() && to != rank(), "rank {} of {} cannot send to rank {}", rank(), size(), to);
  return Request(state().pair(rank(), to).launch({Collective::broadcast, x, x, Redop::sum, 0}, state_));
}

Request Communicator::start_recv(Slice x, int from) {
  require(from >= 0 && from < size() && from != rank(), "rank {} of {} cannot receive from rank {}", rank(), size(), from);
  return Request(state().pair(from, rank()).launch({Collective::broadcast, x, x, Redop::sum, 0}, state_));
}

}  // namespace chorale
