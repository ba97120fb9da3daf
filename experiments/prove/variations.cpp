#include "experiments/prove/variations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <chorale/algorithm.hpp>
#include "collectives/backends/backends.hpp"
#include "experiments/common/each.hpp"
#include "parallel/plan/order.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale::prove {
namespace {

// A variation that can be applied to every case.
Variation always(std::string words, std::function<void(Case&)> change) {
  return {std::move(words), [change = std::move(change)](Case& row) {
            change(row);
            return true;
          }};
}

std::vector<Variation> of_backends() {
  std::vector<Variation> all;
  for (const Backend& backend : all_backends())
    if (backend.open && probe(backend).works)
      all.push_back(always(fmt::format("backend {}", backend.name), [&](Case& row) {
        row.backends = {{"", backend.name}};
      }));
  return all;
}

std::vector<Variation> of_algorithms(const ByAxis& backends) {
  std::vector<std::string> names;
  for (const Algorithm& row : all_algorithms())
    if (row.what == Collective::all_reduce) names.emplace_back(row.name);
  const auto has_native = [](const auto& choice) {
    return std::ranges::any_of(all_backends(),
                               [&](const Backend& row) { return row.has_native && choice.second == row.name; });
  };
  if (std::ranges::all_of(backends, has_native)) names.emplace_back("native");
  return each(names, [](const std::string& name) {
    return always(fmt::format("algorithm {}", name), [name](Case& row) { row.algorithms = {{"", name}}; });
  });
}

std::vector<Variation> of_buckets() {
  return each(std::vector<std::int64_t>{1 << 10, 64 << 10, 1 << 20}, [](std::int64_t bytes) {
    return always(fmt::format("bucket {}", human_bytes(bytes)),
                  [bytes](Case& row) { row.options.replicas.bucket_bytes = bytes; });
  });
}

std::vector<Variation> of_micro_batches() {
  return each(std::vector<std::int64_t>{1, 2, 4}, [](std::int64_t size) {
    return always(fmt::format("micro-batch {}", size), [size](Case& row) { row.options.batch.micro = size; });
  });
}

std::vector<Variation> of_schedules() {
  return each(all_pipeline_schedules(), [](const PipelineAlgorithm& schedule) {
    return Variation{fmt::format("schedule {}", schedule.name), [&schedule](Case& row) {
                       row.layout.schedule = &schedule;
                       row.layout.chunks = schedule.least_chunks;
                       return row.layout.stages() > 1;
                     }};
  });
}

// One variation for each order of all axes. If a layout has fewer axes, several variations can give the same order.
std::vector<Variation> of_orders() {
  Layout whole;
  whole.sizes.fill(0);  // unknown sizes: every axis can have several ranks
  return each(orders_of(whole), [](const AxisOrder& order) {
    return Variation{fmt::format("order {}", join(order, ",")), [order](Case& row) {
                       const Layout before = row.layout;
                       row.layout.order = order;
                       return row.layout != before;
                     }};
  });
}

std::vector<Variation> of_recomputing() {
  return each(all_names<Recompute>(), [](const std::string& name) {
    return always(fmt::format("recompute {}", name),
                  [way = named<Recompute>(name)](Case& row) { row.options.recompute = way; });
  });
}

// Variations with shards in a file: each kind of shard alone, then all kinds that the layout has. A further variation stores
// the block inputs that full recomputation keeps in a file. The offload windows are so small that an update needs several of
// them.
std::vector<Variation> of_places() {
  std::vector<Variation> all;
  for (const auto& [name, parameters, gradients, optimizer] : {std::tuple{"parameters", true, false, false},
                                                               {"gradients", false, true, false},
                                                               {"optimizer", false, false, true},
                                                               {"all", true, true, true}})
    all.push_back(always(fmt::format("{} in a file", name), [=](Case& row) {
      row.options.offload = {parameters, gradients, optimizer, std::filesystem::temp_directory_path(), 4096};
    }));
  all.push_back(always("activations in a file, full recomputation", [](Case& row) {
    row.options.offload = {.folder = std::filesystem::temp_directory_path(), .activations = true};
    row.options.recompute = Recompute::full;
  }));
  return all;
}

// Variations in which the optimizer updates at a different time, with as much of the state in a slow tier as the layout
// allows. Only delayed updates clip gradients, because clipped steps can neither overlap nor be speculative.
// tests/parallel/step/updates_test.cpp tests steps whose updates are rolled back.
std::vector<Variation> of_updates() {
  std::vector<Variation> all;
  for (const UpdateTime time : {UpdateTime::overlapped, UpdateTime::speculative, UpdateTime::delayed})
    all.push_back(always(fmt::format("update {}", name_of(time)), [time](Case& row) {
      row.options.update = time;
      if (time != UpdateTime::delayed) row.options.optimizer.clip = 0;
      if (row.options.offload.any()) return;
      row.options.offload = {.folder = std::filesystem::temp_directory_path(), .window_bytes = 4096};
      row.options.offload.to_host = row.options.kernels.device != nullptr;
      row.options.offload = more_in_tier(row.options.offload, row.layout).back();
    }));
  return all;
}

// Packs samples. On average, a document is a sixth of a sequence.
void pack(Case& row) {
  row.documents.documents = fmt::format("random:{}", std::max<std::int64_t>(row.options.shape.sequence / 6, 1));
  row.options.batch.packed = true;
}

// Schemes are left out if their results are not bit-identical to the results of one rank. A partition of the sequence by
// work differs from other partitions only if samples are packed.
std::vector<Variation> of_contexts() {
  std::vector<Variation> all;
  for (const ContextScheme& scheme : context_schemes())
    for (const CutRow& cut : token_cuts())
      if (scheme.exact)
        all.push_back(
            {fmt::format("context {}, {}{}", scheme.name, cut.name, cut.by_work ? ", documents" : ""), [&](Case& row) {
               row.options.context = {&scheme, &cut};
               if (cut.by_work) pack(row);
               return row.layout.context_ranks() > 1;
             }});
  return all;
}

std::vector<Variation> of_documents() {
  const auto variation = [](bool few_labels) {
    return always(few_labels ? "documents, few labels" : "documents", [few_labels](Case& row) {
      pack(row);
      row.few_labels = few_labels;
    });
  };
  return {variation(false), variation(true)};
}

std::vector<Variation> of_routings() {
  using enum ForcedRouting;
  return each(std::vector<std::optional<ForcedRouting>>{{}, balanced, uniform, zipf, one}, [](const auto& routing) {
    return always(fmt::format("routing {}", routing ? name_of(*routing) : learned_routing),
                  [routing](Case& row) { row.options.shape.experts.routing = routing; });
  });
}

std::vector<Variation> of_capacities() {
  const auto variation = [](const std::string& words, double factor) {
    return always(words, [factor](Case& row) { row.options.shape.experts.capacity = factor; });
  };
  return {variation("no capacity", 0), variation("capacity 0.75", 0.75)};
}

// In the last two variations, the balance is computed over complete steps.
std::vector<Variation> of_balances() {
  return {always("balance of sequences", [](Case& row) { row.options.shape.experts.balancing = BalanceOver::sequence; }),
          always("balance of steps", [](Case& row) { row.options.shape.experts.balancing = BalanceOver::step; }),
          always("balance by biases", [](Case& row) {
            Experts& experts = row.options.shape.experts;
            experts.score = ScoreFunction::sigmoid;
            experts.before_choice = false;
            experts.bias = true;
            experts.bias_rate = 0.01;
          })};
}

// A combination: for each kind of change, the index of one variation.
using Numbers = std::vector<std::size_t>;
using Lists = std::vector<std::vector<Variation>>;

Lists lists_of(const std::vector<std::string>& of_kinds, const Case& plain) {
  return each(of_kinds, [&](const std::string& kind) { return variations_of(kind, plain); });
}

std::vector<Numbers> all_numbers(const Lists& lists) {
  std::vector<Numbers> all{{}};
  for (const auto& list : lists) {
    std::vector<Numbers> longer;
    for (const Numbers& numbers : all)
      for (std::size_t i = 0; i < list.size(); ++i) {
        longer.push_back(numbers);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

Variation combined(const Lists& lists, const Numbers& numbers) {
  std::vector<Variation> parts;
  std::vector<std::string> words;
  for (std::size_t kind = 0; kind < lists.size(); ++kind) {
    parts.push_back(lists[kind][numbers[kind]]);
    words.push_back(parts.back().words);
  }
  return {join(words, ", "),
          [parts](Case& row) { return std::ranges::all_of(parts, [&](const Variation& v) { return v.change(row); }); }};
}

std::vector<Variation> combined(const Lists& lists, const std::vector<Numbers>& all) {
  return each(all, [&](const Numbers& numbers) { return combined(lists, numbers); });
}

// A pair of changes of two kinds, stored as kind, change, kind, change. If there is only one kind, each change is paired
// with itself.
using Pair = std::array<std::size_t, 4>;

std::set<Pair> pairs_in(const Numbers& numbers) {
  std::set<Pair> pairs;
  for (std::size_t a = 0; a < numbers.size(); ++a)
    for (std::size_t b = std::min(a + 1, numbers.size() - 1); b < numbers.size(); ++b)
      pairs.insert({a, numbers[a], b, numbers[b]});
  return pairs;
}

}  // namespace

void check_kinds(const std::vector<std::string>& of_kinds, const ModelShape& shape) {
  for (const std::string& kind : of_kinds)
    if ((kind == "routing" || kind == "capacity" || kind == "balance") && shape.experts.count == 0)
      usage_error("the model has no experts", fmt::format("{} changes what experts do, num-experts is 0", kind),
                  fmt::format("use --preset tiny-moe, or leave out {}", kind));
}

std::vector<Variation> variations_of(const std::string& kind, const Case& plain) {
  if (kind == "backend") return of_backends();
  if (kind == "algorithm") return of_algorithms(plain.backends);
  if (kind == "bucket") return of_buckets();
  if (kind == "micro-batch") return of_micro_batches();
  if (kind == "schedule") return of_schedules();
  if (kind == "order") return of_orders();
  if (kind == "recompute") return of_recomputing();
  if (kind == "routing") return of_routings();
  if (kind == "capacity") return of_capacities();
  if (kind == "balance") return of_balances();
  if (kind == "place") return of_places();
  if (kind == "update") return of_updates();
  return kind == "context" ? of_contexts() : of_documents();
}

std::vector<Variation> combinations(const std::vector<std::string>& of_kinds, const Case& plain) {
  const Lists lists = lists_of(of_kinds, plain);
  return combined(lists, all_numbers(lists));
}

// Repeatedly takes the combination with the most missing pairs, until no pair is missing.
std::vector<Variation> pairwise(const std::vector<std::string>& of_kinds, const Case& plain) {
  const Lists lists = lists_of(of_kinds, plain);
  std::vector<Numbers> all = all_numbers(lists), taken;
  std::set<Pair> missing;
  for (const Numbers& numbers : all) missing.merge(pairs_in(numbers));
  while (!missing.empty()) {
    const auto gain = [&](const Numbers& numbers) {
      return std::ranges::count_if(pairs_in(numbers), [&](const Pair& pair) { return missing.contains(pair); });
    };
    taken.push_back(*std::ranges::max_element(all, {}, gain));
    for (const Pair& pair : pairs_in(taken.back())) missing.erase(pair);
  }
  return combined(lists, taken);
}

}  // namespace chorale::prove
