#include "src/math/embedding.hpp"

#include "src/math/heads.hpp"
#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: gathered rows, learned and rotary positions match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {1, 10, 32, 300}) {
      INFO(name_of(dtype) << " width " << width);
      Desk desk;
      const Tensor ids = desk.empty({21}, DType::i32), table = desk.random({13, width}, dtype);
      const Tensor y = desk.random({21, width}, dtype);
      for (std::int64_t row = 0; row < 21; ++row) put(ids, row, row);  // rows 5 to 17 are in this table
      gpu.compare({ids, table, y}, 0, [](const auto& t, const Queue& queue) { gather_rows(t[0], t[1], 5, t[2], queue); });
      const Tokens tokens{.first_sample = 2, .sequence = 12, .first_token = 4, .tokens = 7, .first_row = 3};
      gpu.compare({table, y}, 0, [&](const auto& t, const Queue& queue) { add_positions(t[0], tokens, t[1], queue); });
    }
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {2, 16, 130})
      for (const bool back : {false, true}) {
        INFO(name_of(dtype) << " turned " << width << " back " << back);
        Desk desk;
        const Rotary rotary{.units = 2, .heads = 4, .rotated = 3, .width = width};
        const Tokens tokens{.sequence = 3000, .first_token = 2000, .tokens = 6};
        const Tensor x = desk.random({12, 2 * 4 * width}, dtype);
        gpu.compare({x}, 0, [&](const auto& t, const Queue& queue) { rotate(t[0], rotary, tokens, back, queue); });
      }
}

TEST_CASE("device: heads are copied out of rows and back as on the host", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {1, 6, 16, 40})
      for (const SomeHeads heads :
           {SomeHeads{2, 5, 0, 3, width}, SomeHeads{2, 5, 3, 1, width}, SomeHeads{3, 2, 1, 1, width}})
        for (const bool back : {false, true}) {
          INFO(name_of(dtype) << " width " << width << ", heads " << heads.first << " and on, back " << back);
          Desk desk;
          const Tensor x = desk.random({7, heads.units * heads.heads * width}, dtype);
          const Tensor rows = desk.random({7 * heads.units * heads.count, width}, dtype);
          gpu.compare({x, rows}, 0, [&](const auto& t, const Queue& queue) { copy_heads(t[0], heads, t[1], back, queue); });
        }
}
