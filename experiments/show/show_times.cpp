// The predicted times of one algorithm for a few sizes, on each backend with prices in the machine file.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "collectives/prediction/prediction.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/show/show.hpp"
#include "src/base/text.hpp"

namespace chorale {

std::string times_of(const Algorithm& algorithm, const Problem& shape, int chunks, const Selector& selector) {
  constexpr std::int64_t sizes[] = {1 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::string text;
  for (const Backend& backend : all_backends()) {
    if (!selector.is_calibrated(backend.name, shape)) continue;
    std::vector<std::string> words;
    for (const std::int64_t bytes : sizes) {
      Problem problem = shape;
      problem.blocks = Problem::even(shape.what, bytes / size_of(DType::f32), shape.size).blocks;
      if (shape.what == Collective::all_to_all) problem.taken = problem.blocks;
      if (!fits(algorithm, problem)) continue;
      const double seconds = selector.predict(backend.name, algorithm.name, chunks, problem, DType::f32);
      words.push_back(fmt::format("{} in {}", human_bytes(bytes), human_seconds(seconds)));
    }
    const int hosts = number_of_hosts(shape.hosts);
    const Level* const level =
        prediction::nearest(selector.machine(), backend.name, hosts > 1 ? "network" : "host", shape.size, hosts);
    text += fmt::format("{:<8}{} of f32 on {}\n{:<8}by {}\n", text.empty() ? "time" : "", join(words, ", "), backend.name,
                        "", origin_of(selector.machine(), *level));
  }
  if (!text.empty()) return text;
  if (shape.size > prediction::most_ranks)
    return fmt::format("time    none: calls of more than {} ranks are not predicted\n", prediction::most_ranks);
  if (!shape.hosts.empty())
    return fmt::format(
        "time    {}: no prices between hosts were measured here; to measure them, start {} tune --calibrate "
        "--backend ucx on several hosts\n",
        not_calibrated, program());
  return fmt::format("time    {}: no prices were measured here; to measure them: {}\n", not_calibrated,
                     command_on(std::max(2, shape.size), "tune --calibrate --backend shm,ucx,mpi"));
}

}  // namespace chorale
