#include "parallel/step/first_nan.hpp"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "src/base/text.hpp"
#include "src/math/queue.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {

void FirstNan::look(const Place& place, const char* what, const std::string& where, const Tensor& tensor) {
  ++looks_;
  if (!is_floating(tensor.dtype()) || tensor.phantom()) return;
  visit_floating(tensor.dtype(), [&]<class T>(Type<T>) {
    with_values<T>(tensor, Use::read, [&](std::span<T> values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        if (std::isfinite(value)) continue;
        return keep(
            place, fmt::format("{} of {} is {}", what, where, value),
            fmt::format("element {} of {}, shape {}, type {}", i, values.size(), to_string(tensor.shape()),
                        name_of(tensor.dtype())),
            "lower --lr, warm up longer or clip the gradient (--clip-grad); --on-nan can skip the step or roll back");
      }
    });
  });
}

void FirstNan::take(const Place& place, const std::optional<Error>& trouble) {
  if (!trouble) return;
  const std::vector<std::string> lines = split(trouble->what(), '\n');
  keep(place, lines.at(0), trim(lines.at(1)), trim(lines.at(2)));
}

void FirstNan::keep(const Place& place, const std::string& what, const std::string& numbers, const std::string& fix) {
  const Key key{place.micro_batch, place.back, place.passed, looks_};
  if (key >= first_) return;
  first_ = key;
  lines_ = {what, numbers, fix};
}

void FirstNan::throw_first(Axis& world) const {
  std::string mine;
  for (const std::int64_t part : first_) mine += fmt::format("{} ", part);
  const std::vector<std::string> all = world.exchange(mine + join({lines_.begin(), lines_.end()}, "\n"));
  Key first{INT64_MAX};
  std::array<std::string, 3> lines;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream in(all[rank]);
    Key key;
    for (std::int64_t& part : key) in >> part;
    if (key >= first) continue;
    first = key;
    in.ignore();  // skips one blank
    for (std::string& line : lines) std::getline(in, line);
    if (all.size() > 1) lines[0] += fmt::format(" on rank {}", rank);
  }
  if (first[0] < INT64_MAX) throw NotFinite(step_, ": " + lines[0], lines[1], lines[2], first[0] == Place{}.micro_batch);
}

}  // namespace chorale
