#include "parallel/birth.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/math/queue.hpp"

namespace chorale {

void throw_if_not_finite(std::int64_t step, const char* what, const std::string& where, const Tensor& tensor) {
  if (!is_floating(tensor.dtype()) || tensor.phantom()) return;
  visit_floating(tensor.dtype(), [&]<class T>(Type<T>) {
    const auto values = tensor.values<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      if (std::isfinite(value)) continue;
      throw Error(Exit::runtime, fmt::format("step {}: {} of {} is {}", step, what, where, value),
                  fmt::format("element {} of {}, shape {}, type {}", i, values.size(), to_string(tensor.shape()),
                              name_of(tensor.dtype())),
                  "lower --lr, warm up longer, or clip the gradient (--clip-grad); the last checkpoint is as it was");
    }
  });
}

}  // namespace chorale
