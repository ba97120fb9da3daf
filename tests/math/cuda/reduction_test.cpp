#include "src/math/reduction.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: reductions and quotients give the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : all_dtypes)
    for (const Redop op : {Redop::sum, Redop::prod, Redop::min, Redop::max, Redop::avg})
      for (const std::size_t sources : {1u, 2u, 5u})
        for (const std::int64_t count : {1, 300, 4096}) {
          INFO(name_of(dtype) << " " << redop_names[static_cast<int>(op)] << " of " << sources << " × " << count);
          Desk desk;
          std::vector<Tensor> tensors;
          for (std::size_t s = 0; s < sources; ++s) tensors.push_back(desk.random({count}, dtype, 9));
          if (is_floating(dtype)) {
            put(tensors.front(), 0, -0.0);
            put(tensors.back(), 0, 0.0);
            put(tensors.back(), count - 1, NAN);
          }
          gpu.compare(tensors, 0, [&](const auto& t, const Queue& queue) {
            std::vector<const void*> from;
            for (const Tensor& tensor : t) from.push_back(tensor.slice().data);
            void* out = t.back().slice().data;
            if (!queue.device) {
              reduce(op, dtype, out, from, count);
              divide(dtype, out, count, 3);
            } else {
              queue.device->reduce(op, dtype, out, from, count, queue);
              queue.device->divide(dtype, out, count, 3, queue);
            }
          });
        }
}
