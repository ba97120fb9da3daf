#include "collectives/call/abandoned_operations.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "src/base/error.hpp"
#include "src/base/wait.hpp"

namespace chorale {
namespace {

template <class Done>
bool comes_true(Done&& done, Clock& clock, double seconds) noexcept try {
  wait_until(done, {.clock = clock, .timeout_seconds = seconds, .spins = 0, .yields = 0}, "peers to let go of a call");
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace

void AbandonedOperations::cancel() noexcept {
  for (const auto& operation : operations_) operation->abandon();
}

void AbandonedOperations::let_go(Group& group, Clock& clock, const std::string& why,
                                 const std::function<bool()>& lost) noexcept {
  constexpr double writers_seconds = 30, readers_seconds = 5, pause_seconds = 1e-3;
  cancel();
  group.poison(why);
  // A peer might have begun a call just before this rank abandoned the call. The pause gives the peer's store time to become
  // visible to this rank.
  if (!operations_.empty()) clock.sleep(pause_seconds);
  if (!comes_true([&] { return lost() || !any(&Operation::may_be_written); }, clock, writers_seconds)) {
    fmt::print(stderr,
               "error: {}\n  this rank gave up, and after {} s a peer may still write to the buffers of its calls\n"
               "  fix that error; this rank ends because its memory is not safe\n",
               why, writers_seconds);
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(Exit::runtime));
  }
  group.close();
  comes_true([&] { return lost() || !any(&Operation::may_be_read); }, clock, readers_seconds);
}

bool AbandonedOperations::any(bool (Operation::*question)() noexcept) noexcept {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& one) { return ((*one).*question)(); });
}

AbandonedOperations::~AbandonedOperations() {
  for (auto& operation : operations_)
    if (operation->may_be_written() || operation->may_be_read()) operation.release();
}

}  // namespace chorale
