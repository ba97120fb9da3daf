#include "src/math/heads.hpp"

#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

namespace chorale {

TEST_CASE("some heads are copied out of rows and back, and the other heads stay") {
  for (const int threads : {1, 2}) {
    Desk desk;
    const SomeHeads keys{.units = 2, .heads = 4, .first = 2, .count = 1, .width = 3};
    const Tensor x = desk.empty({5, 2 * 4 * 3}, DType::i32), rows = desk.empty({5 * 2 * 1, 3}, DType::i32);
    const auto values = x.values<std::int32_t>(), copied = rows.values<std::int32_t>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
    copy_heads(x, keys, rows, false, {threads});
    CHECK((copied[0] == 6 && copied[2] == 8 && copied[3] == 18 && copied[29] == 24 * 4 + 12 + 8));
    for (std::int32_t& value : copied) value = -value;
    copy_heads(x, keys, rows, true, {threads});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto number = static_cast<std::int32_t>(i);
      CHECK(values[i] == (i / 3 % 4 == 2 ? -number : number));
    }
    CHECK_THROWS_WITH(copy_heads(x, {2, 4, 3, 2, 3}, rows, false, {threads}), says("heads 3 to 4 of 4"));
  }
}

}  // namespace chorale
