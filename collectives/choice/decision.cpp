#include "collectives/choice/decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

std::int64_t sum_of(Counts counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

std::int64_t even_first(std::int64_t total, int size, int rank) {
  return total / size * rank + std::min<std::int64_t>(rank, total % size);
}

// Returns the number of elements of the complete vector, derived from this rank's buffers.
std::int64_t total_of(const Call& call, int size) {
  if (!call.counts.empty() && call.what != Collective::all_to_all) return sum_of(call.counts);
  switch (call.what) {
    case Collective::broadcast:
    case Collective::all_gather: return call.output.count;
    case Collective::gather: return call.input.count * size;
    case Collective::scatter: return call.output.count * size;
    case Collective::barrier: return 1;
    default: return call.input.count;
  }
}

// Whether a user's request for an algorithm applies to the call. A request that was made for all collectives does not apply
// to an uneven all_to_all if the algorithm needs equal blocks.
bool applies(const Choice& asked, const Key& key) {
  if (key.is_ours || asked.algorithm == "auto") return false;
  if (!is_uneven_exchange(key) || !asked.everywhere) return true;
  const Algorithm* const algorithm = find_algorithm(key.what, asked.algorithm);
  return !algorithm || !algorithm->fits;
}

Choice choice_for(const Key& key, const Problem& problem, const Preferences& preferences) {
  const auto asked = preferences.asked.find(problem.what);
  if (asked != preferences.asked.end() && applies(asked->second, key)) return asked->second;
  if (is_uneven_exchange(key)) return {"direct", 1, "each rank knows only its own counts, and all must choose alike"};
  return preferences.selector.choose(preferences.backend, problem, problem.blocks.total() * size_of(key.dtype),
                                     native_agrees(problem, key.dtype, key.op));
}

// Whether the algorithm can solve the problems of all ranks. In an uneven all_to_all, a rank might know only its own counts.
// A rank that lacks the counts of other ranks requires that the algorithm fits all possible counts.
bool fits_everywhere(const Algorithm& algorithm, const Key& key, const Problem& problem,
                     std::span<const Problem> everybodys) {
  if (!everybodys.empty())
    return std::ranges::all_of(everybodys, [&](const Problem& of_rank) { return fits(algorithm, of_rank); });
  return is_uneven_exchange(key) ? algorithm.fits == nullptr : fits(algorithm, problem);
}

}  // namespace

bool is_one_vector(const Call& call, int rank, int size) {
  const auto own_block_of = [&](const Slice& whole) {
    const std::int64_t first = call.counts.empty() ? even_first(whole.count, size, rank)
                                                   : sum_of(call.counts.first(static_cast<std::size_t>(rank)));
    return static_cast<std::byte*>(whole.data) + first * size_of(whole.dtype);
  };
  switch (call.what) {
    case Collective::all_gather: return call.input.data == own_block_of(call.output);
    case Collective::reduce_scatter: return call.output.data == own_block_of(call.input);
    default: return call.input.data == call.output.data;
  }
}

Key key_of(const Call& call, int size, bool is_one_vector) {
  const Slice& typed = call.input.count > 0 ? call.input : call.output;
  Key key{.what = call.what,
          .dtype = call.what == Collective::barrier ? DType::u8 : typed.dtype,
          .op = call.op,
          .in_place = is_one_vector,
          .root = call.root,
          .on_device = !typed.device.is_host(),
          .count = total_of(call, size)};
  key.counts.assign(call.counts.begin(), call.counts.end());
  if (call.what == Collective::all_to_all) key.counts.insert(key.counts.end(), call.taken.begin(), call.taken.end());
  if (is_uneven_exchange(call)) return key;
  // An empty block has no meaningful address, so if any block is empty, all ranks treat the call as out of place. Treating
  // the call as out of place is correct even on a rank whose input is its own block of the output.
  const bool is_cut = call.what == Collective::all_gather || call.what == Collective::reduce_scatter;
  const bool any_empty = call.counts.empty() ? key.count < size : std::ranges::count(call.counts, 0) > 0;
  const bool has_no_form =
      call.what == Collective::gather || call.what == Collective::scatter || call.what == Collective::barrier;
  if (key.count == 0 || (any_empty && is_cut) || has_no_form) key.in_place = false;
  return key;
}

Problem problem_of(const Key& key, Counts counts, int rank, int size, const std::vector<int>& hosts) {
  Problem problem = Problem::even(key.what, key.count, size, key.root, key.in_place, hosts);
  problem.rank = rank;
  const auto half = static_cast<std::ptrdiff_t>(size);
  if (!counts.empty()) problem.blocks = Blocks({counts.begin(), counts.begin() + half});
  if (counts.empty() || key.what != Collective::all_to_all) return problem;
  problem.taken = Blocks({counts.begin() + half, counts.begin() + 2 * half});
  if (counts.size() > 2 * static_cast<std::size_t>(size)) problem.in_place = counts.back() != 0;
  return problem;
}

std::string words_for(const Key& key, const Choice& choice) {
  std::string words = fmt::format("{} of {} {}", name_of(key.what), key.count, name_of(key.dtype));
  if (reduces(key.what)) words += fmt::format(", {}", redop_names[static_cast<std::size_t>(key.op)]);
  if (has_root(key.what)) words += fmt::format(", root {}", key.root);
  words += ", " + choice.algorithm;
  if (choice.chunks > 1) words += fmt::format(" in {} chunks", choice.chunks);
  return words + (key.in_place ? ", in place" : "") + (key.on_device ? ", on a device" : "");
}

std::vector<std::string> algorithm_names(std::span<const Collective> of) {
  std::vector<std::string> names{"auto", "native"};
  for (const Algorithm& row : all_algorithms())
    if (std::ranges::count(of, row.what) && !std::ranges::count(names, row.name)) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> algorithm_names() {
  std::vector<Collective> all;
  for (const Algorithm& row : all_algorithms()) all.push_back(row.what);
  return algorithm_names(all);
}

RequestedAlgorithms requested_everywhere(const std::string& algorithm) {
  RequestedAlgorithms asked;
  for (const Algorithm& row : all_algorithms())
    if (algorithm == row.name || algorithm == "auto" || algorithm == "native")
      asked[row.what] = {.algorithm = algorithm, .chunks = 1, .why = "requested by name", .everywhere = true};
  if (asked.empty()) {
    const std::vector<std::string> known = algorithm_names();
    usage_error(fmt::format("no algorithm is called \"{}\"", algorithm), "there are " + join(known, ", "),
                did_you_mean(algorithm, known, "`chorale show` says what each does"));
  }
  return asked;
}

Decision decide(const Key& key, const Problem& problem, std::span<const Problem> everybodys,
                const Preferences& preferences) {
  Choice choice = choice_for(key, problem, preferences);
  if (choice.algorithm == "native") return {std::move(choice)};
  const Algorithm* const algorithm = choice.own ? choice.own : find_algorithm(key.what, choice.algorithm);
  if (!algorithm || !fits_everywhere(*algorithm, key, problem, everybodys))
    usage_error(fmt::format("{} {} does not fit", name_of(key.what), choice.algorithm),
                fmt::format("{} ranks, {}", problem.size, words_for(key, choice)), "choose another algorithm, or auto");
  const Schedule schedule = algorithm->plan(problem);
  const std::int64_t each = size_of(key.dtype);
  return {std::move(choice), algorithm, each * schedule.elements_sent(), each * schedule.elements_crossing()};
}

}  // namespace chorale
