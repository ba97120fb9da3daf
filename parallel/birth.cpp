#include "parallel/birth.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/base/text.hpp"
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

void throw_at_step(std::int64_t step, const Error& error) {
  const std::vector<std::string> lines = split(error.what(), '\n');
  throw Error(error.exit(), fmt::format("step {}: {}", step, lines.at(0)), trim(lines.at(1)), trim(lines.at(2)));
}

}  // namespace chorale
