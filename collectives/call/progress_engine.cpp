#include "collectives/call/progress_engine.hpp"

#include <algorithm>
#include <iterator>

#include "collectives/call/communicator_state.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale {

namespace {

// While a guard (the watchdog process of a host, src/base/guard/guard.hpp) is running, only the guard decides whether a run
// hangs. If the guard dies, a wait ends after this time or after the wait's own limit, whichever is longer.
constexpr double unguarded_seconds = 600;

// Longer than the time for which the scheduler lets a neighbor run on the core of the awaited rank.
constexpr double spin_seconds = 0.01;

}  // namespace

ProgressEngine::ProgressEngine(Clock& clock, bool oversubscribed, double timeout_seconds, Flight* flight)
    : waiting_{.clock = clock,
               .timeout_seconds = flight ? std::max(timeout_seconds, unguarded_seconds) : timeout_seconds,
               .spins = oversubscribed ? 0 : 2000,
               .spin_seconds = oversubscribed ? 0 : spin_seconds,
               .on_idle =
                   [this] {
                     examine();
                     tell_guard();
                   },
               .moved = [this] { return moved(); },
               .watched = [this] { return flight_ ? flight_->judged() : 0; },
               .fix = "a peer is slow, stopped or gone; CHORALE_TIMEOUT=SECONDS changes the limit"},
      briefly_(waiting_),
      flight_(flight),
      patience_seconds_(timeout_seconds) {
  briefly_.timeout_seconds = 2;
  briefly_.watched = {};
}

std::vector<Request::PendingCall*> ProgressEngine::calls_of(const Communicator::State* group) const {
  std::vector<Request::PendingCall*> found;
  std::ranges::copy_if(calls_, std::back_inserter(found),
                       [&](const Request::PendingCall* call) { return call->group == group && !call->over; });
  return found;
}

// Returns a number that changes whenever a step of any call completes. A wait compares this number with an earlier value to
// detect progress.
std::uint64_t ProgressEngine::moved() const {
  std::uint64_t steps = 0;
  for (const Request::PendingCall* call : calls_)
    if (call->operation) steps += call->operation->moved();
  return steps;
}

void ProgressEngine::progress() {
  for (std::size_t c = 0; c < calls_.size();) {
    Request::PendingCall& call = *calls_[c];
    call.group->move(call);
    if (call.over)
      calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(c));
    else
      ++c;
  }
}

void ProgressEngine::poll() {
  constexpr std::uint64_t patience = 256;
  progress();
  if (calls_.empty() || ++polls_ % patience != 0) return;
  run_progress_hooks();
  examine();
}

// An error is stored in the call in which it occurs. The wait for that call throws the error.
void ProgressEngine::examine() {
  for (Request::PendingCall* call : calls_) try {
      if (call->sequence != 0 && call->operation) call->operation->examine();
    } catch (...) {
      call->trouble = std::current_exception();  // `move` ends the call
    }
}

// Tells the guard in which calls this rank waits and, for each of these calls, which rank must act next.
void ProgressEngine::tell_guard() {
  if (!flight_) return;
  for (Request::PendingCall* call : calls_) try {
      if (call->sequence == 0 || !call->operation) continue;
      const int awaited = call->operation->awaits();
      flight_->stands(call->ticket, call->operation->moved(), awaited < 0 ? -1 : call->group->launched_rank(awaited));
    } catch (...) {
      call->trouble = std::current_exception();  // the awaited rank made a mismatched call
    }
  flight_->waits(patience_seconds_, moved(), finishing_ ? finishing_->ticket : 0);
}

void ProgressEngine::finish(Request::PendingCall& call, bool briefly) {
  const auto done = [&] {
    progress();
    return call.over;
  };
  finishing_ = &call;
  if (!call.over) try {
      wait_until(done, briefly ? briefly_ : waiting_, call.route->plan.words.c_str());
      if (flight_) flight_->goes_on();
    } catch (const std::exception& error) {
      if (flight_) flight_->goes_on();
      call.group->give_up(error);
      throw;
    }
  if (call.trouble) std::rethrow_exception(call.trouble);
}

}  // namespace chorale
