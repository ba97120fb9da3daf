#include "layers/tape.hpp"

#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

namespace chorale {
namespace {

TEST_CASE("a tape returns tensors in reverse order and throws when it is empty") {
  Desk desk;
  const Tensor a = desk.random({2}, DType::f32), b = desk.random({3}, DType::f32);
  Tape tape;
  tape.keep(a);
  tape.keep(b);
  CHECK(tape.take().storage() == b.storage());
  CHECK(tape.take().storage() == a.storage());
  CHECK(tape.empty());
  CHECK_THROWS_AS(tape.take(), Error);
}

TEST_CASE("a selective tape keeps the recipe instead of a tensor that can be recomputed") {
  Desk desk;
  for (const bool selective : {true, false}) {
    Tape tape(selective);
    int made = 0;
    {
      const Tensor y = desk.random({1000}, DType::f32), other = desk.random({10}, DType::f32);
      tape.can_be_made_again(y, [&] {
        ++made;
        return desk.filled({1000}, DType::f32, 3);
      });
      tape.keep(other);
      tape.keep(y);
    }
    CHECK(desk.ledger.total() == (selective ? 40 : 4040));
    CHECK(tape.take().count() == 1000);
    CHECK(made == (selective ? 1 : 0));
    CHECK(tape.take().count() == 10);
  }
}

}  // namespace
}  // namespace chorale
