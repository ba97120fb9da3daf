#include "parallel/state/parts.hpp"

#include "tests/catch.hpp"
#include "tests/parallel/state/saved_state.hpp"

namespace chorale::test {

TEST_CASE("copying between two cuts of a tensor copies every element") {
  std::mt19937 chance(1);
  for (int round = 0; round < 300; ++round) {
    const Shape shape = known_tensors()[static_cast<std::size_t>(round) % known_tensors().size()].shape;
    const auto from = random_cover(shape, chance), to = random_cover(shape, chance);
    CHECK(flaw_in_cover(shape, from) == "");
    for (const Part& target : to) {
      std::vector<std::int64_t> got(static_cast<std::size_t>(target.count), -1);
      std::int64_t copied = 0;
      for (const Part& source : from) {
        const auto values = places(source, shape);
        copied +=
            copy_common(shape, 8, source, std::as_bytes(std::span(values)), target, std::as_writable_bytes(std::span(got)));
      }
      CHECK(copied == target.count);
      CHECK(got == places(target, shape));
    }
  }
}

TEST_CASE("parts that do not make up the whole tensor are refused") {
  const Shape shape = {4, 6};
  CHECK(flaw_in_cover(shape, {{{}, 0, 24}}) == "");
  CHECK(flaw_in_cover(shape, {{{}, 12, 12}, {{}, 0, 12}}) == "");
  CHECK(flaw_in_cover(shape, {{{0, 0, 4}, 0, 24}}) == "");
  CHECK(flaw_in_cover({0, 3}, {}) == "");
  CHECK_THAT(flaw_in_cover(shape, {}), says("no part"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 12}}), says("12 of its 24"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 12}, {{}, 10, 14}}), says("begins at 10"));
  CHECK_THAT(flaw_in_cover(shape, {{{}, 0, 24}, {{}, 0, 24}}), says("begins at 0, but the previous one ends at 24"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}, {{0, 2, 2}, 0, 12}}), says("along dim 1 and along dim 0"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}}), says("3 of 6 indices along dim 1"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 12}, {{1, 2, 4}, 0, 16}}), says("begins at 2"));
  CHECK_THAT(flaw_in_cover(shape, {{{1, 0, 3}, 0, 6}, {{1, 0, 6}, 6, 18}}), says("overlap"));
  CHECK_THROWS_WITH(resolved({{1, 3, 4}}, shape), says("not within the shape"));
  CHECK_THROWS_WITH(resolved({{}, 20, 5}, shape), says("does not lie within a shard of 24 elements"));
}

}  // namespace chorale::test
