// Tests background saves. A background save must store the state at the time when the save began. A failed save must leave
// earlier sets of files intact.
#include "parallel/state/background_save.hpp"

#include "tests/catch.hpp"
#include "tests/parallel/state/saved_state.hpp"
#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

void wait_until_written(const BackgroundSave& save) {
  while (!save.is_written()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a background save has the state of its beginning") {
  const TemporaryFolder folder;
  const SystemClock clock;
  KnownState state = whole_state();
  state.fill(5);
  BackgroundSave save(folder, known_metadata(5), state.tensors, {}, clock);
  state.fill(6);
  CHECK(save.step() == 5);
  CHECK(save.finish().bytes > 0);
  CHECK(save.hidden_seconds() >= 0);
  CHECK(step_loaded(folder) == 5);
}

TEST_CASE("a background save that fails or is not finished leaves the earlier set") {
  const TemporaryFolder folder;
  const SystemClock clock;
  save_step(folder, 1);
  KnownState state = whole_state();
  state.fill(2);
  {
    BackgroundSave unfinished(folder, known_metadata(2), state.tensors, {}, clock);
    wait_until_written(unfinished);
  }
  CHECK(step_loaded(folder) == 1);
  state.tensors[0].data.count = 1;
  BackgroundSave failing(folder, known_metadata(3), state.tensors, {}, clock);
  wait_until_written(failing);
  CHECK_THROWS_WITH(failing.finish(), says("to save has 60 elements, but its data have 1"));
  CHECK(step_loaded(folder) == 1);
  save_step(folder, 4);
  CHECK(step_loaded(folder) == 4);
}

TEST_CASE("if one rank cannot write, a background save fails on all ranks", "[threads]") {
  const TemporaryFolder folder;
  const SystemClock clock;
  save_step(folder, 1);
  Exchange exchange(2);
  std::vector<std::string> errors(2);
  CHECK(on_threads(2, [&](ThreadRank& me) {
          KnownState state = whole_state();
          if (me.rank() == 1) state.tensors[0].data.count = 1;
          BackgroundSave save(folder, known_metadata(2), state.tensors, exchange.peers(me.rank()), clock);
          try {
            save.finish();
          } catch (const Error& error) {
            errors[static_cast<std::size_t>(me.rank())] = error.what();
          }
        }) == "");
  CHECK_THAT(errors[0], says("the checkpoint was not saved") && says("rank 1: "));
  CHECK_THAT(errors[1], says("to save has 60 elements"));
  CHECK(step_loaded(folder) == 1);
}

}  // namespace chorale::test
