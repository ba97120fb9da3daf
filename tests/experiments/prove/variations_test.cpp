// Tests combinations of the variations that `chorale prove` tries. One set has all combinations. A smaller set covers every
// pair of variations.
#include "experiments/prove/variations.hpp"

#include <set>

#include "tests/catch.hpp"

namespace chorale::prove {
namespace {

const std::vector<std::string> three{"bucket", "micro-batch", "recompute"};  // each has 3 variations

Case plain() { return {.layout = parse_layout("dp2", 0), .backends = {}, .algorithms = {}, .options = {}}; }

// Settings that differ from those of a case without variations.
using Changed = std::array<std::int64_t, 3>;

std::set<Changed> all_changed(const std::vector<Variation>& variations) {
  std::set<Changed> all;
  for (const Variation& variation : variations) {
    Case row = plain();
    CHECK(variation.change(row));
    all.insert({row.options.replicas.bucket(), row.options.batch.micro, static_cast<std::int64_t>(row.options.recompute)});
  }
  return all;
}

TEST_CASE("combinations of changes are a full product, each with its words") {
  const std::vector<Variation> all = combinations(three, plain());
  CHECK(all.size() == 27);
  CHECK(all_changed(all).size() == 27);
  CHECK(all.front().words == "bucket 1.0 KiB, micro-batch 1, recompute none");
}

TEST_CASE("few combinations contain every pair of changes") {
  const std::vector<Variation> few = pairwise(three, plain());
  CHECK(few.size() < 14);
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = a + 1; b < 3; ++b) {
      std::set<std::pair<std::int64_t, std::int64_t>> pairs;
      for (const Changed& changed : all_changed(few)) pairs.insert({changed[a], changed[b]});
      CHECK(pairs.size() == 9);
    }
  CHECK(pairwise({"recompute"}, plain()).size() == 3);
}

TEST_CASE("a change of the schedule fits pipelines only") {
  Case row = plain();
  for (const Variation& variation : variations_of("schedule", row)) CHECK(!variation.change(row));
  row.layout = parse_layout("dp1.pp2", 0);
  for (const Variation& variation : variations_of("schedule", row)) CHECK(variation.change(row));
}

}  // namespace
}  // namespace chorale::prove
