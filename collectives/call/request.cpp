// A Request represents a started call. If the call was split into segments, the Request waits for the segments one after
// another.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "collectives/call/communicator_state.hpp"

namespace chorale {

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

// Waits for the next segment of this call. If a segment fails, the remaining segments are abandoned.
void Request::wait_for_first(bool briefly) try {
  pending_->group->engine->finish(*pending_, briefly);
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

// The caller is about to free the call's buffers, but peers can still access these buffers. If the call fails, ending the
// process is the only safe reaction. During stack unwinding the wait is short, so that the first error is reported soon.
Request::~Request() {
  if (!pending_) return;
  Flight* const flight = pending_->group->engine->flight();
  try {
    wait(std::uncaught_exceptions() > 0);
  } catch (const std::exception& error) {
    if (const int code = flight ? flight->lost_after(error) : 0) std::_Exit(code);  // the cause has already been reported
    fmt::print(
        stderr,
        "error: a started call failed, and its Request was destroyed without wait()\n  {}\n  call wait() on every Request\n",
        error.what());
    std::fflush(nullptr);
    constexpr int code = static_cast<int>(Exit::runtime);
    if (flight) flight->failed(code);
    std::_Exit(code);
  }
}

}  // namespace chorale
