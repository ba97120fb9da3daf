#include "collectives/call/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collectives/call/communicator_state.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator::State& Communicator::state() const {
  if (!state_) [[unlikely]]
    throw Error(Exit::runtime, "this communicator is empty",
                "it was moved from, or split() was given a negative color on this rank",
                "use the one it was moved to, or test `if (communicator)` first");
  return *state_;
}

int Communicator::rank() const { return state().rank(); }
int Communicator::size() const { return state().size(); }
std::string Communicator::backend() const { return state().world->transport->name(); }
Transport& Communicator::transport() const { return *state().world->transport; }
Allocator& Communicator::allocator() const { return state().world->allocator; }
Clock& Communicator::clock() const { return state().engine->clock(); }
const Traffic& Communicator::traffic() const { return state().traffic; }

void Communicator::forget_routes() { state().routes.forget(); }

void Communicator::choose(Collective what, const std::string& algorithm, int chunks) {
  const std::vector<std::string> known = algorithm_names(std::array{what});
  if (std::find(known.begin(), known.end(), algorithm) == known.end())
    usage_error(fmt::format("no {} is called \"{}\"", name_of(what), algorithm), "there are " + join(known, ", "),
                "choose one of these");
  require(chunks >= 1, "a schedule cannot be cut into {} chunks", chunks);
  state().routes.chosen[what] = {algorithm, chunks, "requested by name"};
  forget_routes();
}

void Communicator::choose(const Algorithm& own, int chunks) {
  require(chunks >= 1, "a schedule cannot be cut into {} chunks", chunks);
  state().routes.chosen[own.what] = {own.name, chunks, "requested by name", &own};
  forget_routes();
}

void Communicator::choose(const std::string& algorithm) {
  for (auto& [what, choice] : requested_everywhere(algorithm)) state().routes.chosen[what] = choice;
  forget_routes();
}

void Communicator::check_calls(bool on) {
  state().routes.check = on;
  for (const auto& [ranks, pair] : state().pairs) Communicator(pair).check_calls(on);
  forget_routes();
}

void Communicator::block_in_native(bool on) { state().native_blocks = on; }

void Communicator::pretend_hosts(const std::vector<int>& hosts) {
  require(hosts.empty() || std::ssize(hosts) == size(), "hosts of {} ranks were given to a group of {}", hosts.size(),
          size());
  state().routes.hosts = hosts_among(hosts);
  forget_routes();
}

const std::vector<int>& Communicator::hosts() const { return state().routes.hosts; }

void Communicator::go_by(std::shared_ptr<const Selector> selector) {
  Transport& transport = *state().world->transport;
  transport.stage_up_to(selector->staged_bytes(transport.name(), transport.size()));
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

Choice Communicator::choice(const Call& call) const { return state().route_of(state().used(call))->choice; }

void Communicator::run(const Call& call) { state().run(call); }
Request Communicator::start(const Call& call) { return Request(state().launch(call)); }

void Communicator::poll() const {
  ProgressEngine& engine = *state().engine;
  if (Flight* const flight = engine.flight()) flight->heartbeat();  // a caller is alive if it computes between polls
  engine.poll();
}

Request Communicator::start_send(Slice x, int to) {
  require(to >= 0 && to < size() && to != rank(), "rank {} of {} cannot send to rank {}", rank(), size(), to);
  return Request(state().pair(rank(), to).launch({Collective::broadcast, x, x, Redop::sum, 0}, state_));
}

Request Communicator::start_recv(Slice x, int from) {
  require(from >= 0 && from < size() && from != rank(), "rank {} of {} cannot receive from rank {}", rank(), size(), from);
  return Request(state().pair(from, rank()).launch({Collective::broadcast, x, x, Redop::sum, 0}, state_));
}

}  // namespace chorale
