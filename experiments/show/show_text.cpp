#include <fmt/format.h>

#include <algorithm>

#include "collectives/analysis/drawing.hpp"
#include "collectives/analysis/host_traffic.hpp"
#include "collectives/analysis/reduction_order.hpp"
#include "collectives/schedule/lanes.hpp"
#include "experiments/common/each.hpp"
#include "experiments/show/show.hpp"
#include "src/base/host.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale {
namespace {

constexpr int most_drawn = 32;             // a picture of more ranks would be unreadable
constexpr std::size_t most_orders = 8;     // maximum number of lines about the order of the sums
constexpr std::int64_t element_bytes = 1;  // costs are given as multiples of the vector's length n, so any value works

// Three times of an algorithm: with only latency (α per message), only bandwidth (β per element) or only arithmetic (γ per
// element). The times are multiples of α, nβ and nγ for a vector of n elements. If all ranks run their rounds in lockstep,
// the time is the sum of the three; otherwise it is close to the sum.
struct Terms {
  double alpha, beta, gamma;
};

Terms terms_of(const std::vector<Schedule>& ranks) {
  const double n = static_cast<double>(std::max<std::int64_t>(1, ranks.at(0).problem().blocks.total()));
  return {predict(ranks, element_bytes, {1, 0, 0}), predict(ranks, element_bytes, {0, 1, 0}) / n,
          predict(ranks, element_bytes, {0, 0, 1}) / n};
}

// Formats the values of all ranks: "4", or "1 to 4" if ranks differ.
std::string over_ranks(const std::vector<Schedule>& ranks, std::int64_t Volume::*what) {
  const auto values = each(ranks, [&](const Schedule& rank) { return volume(rank, element_bytes).*what; });
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? fmt::format("{}", *most) : fmt::format("{} to {}", *least, *most);
}

std::string price_of(const std::vector<Schedule>& ranks) {
  const Terms terms = terms_of(ranks);
  return fmt::format("price   {} rounds; a rank sends {} messages, {} elements\n        {:.4g} α + {:.4g} nβ + {:.4g} nγ\n",
                     find_rounds(ranks).count, over_ranks(ranks, &Volume::messages_sent),
                     over_ranks(ranks, &Volume::bytes_sent), terms.alpha, terms.beta, terms.gamma);
}

// " (n0: 0-1, n1: 2-4, n2: 5)", or "" if all ranks are on one host.
std::string words_for_hosts(const Problem& problem) {
  const Lanes lanes(problem);
  std::vector<std::string> words;
  for (int host = 0; host < lanes.hosts(); ++host)
    words.push_back(fmt::format("n{}: {}", host, cpu_ranges(lanes.ranks(host))));
  return lanes.hosts() == 1 ? "" : fmt::format(" ({})", join(words, ", "));
}

// Lists how much each host sends to other hosts and receives from them. Returns "" if all ranks are on one host.
std::string between_hosts(const std::vector<Schedule>& ranks) {
  if (ranks.at(0).problem().hosts.empty()) return "";
  std::string text = "between hosts\n";
  const std::vector<HostTraffic> hosts = host_traffic(ranks);
  for (std::size_t host = 0; host < hosts.size(); ++host)
    text += fmt::format("  n{}  sends {} elements in {} messages, receives {} in {}\n", host, hosts[host].elements_sent,
                        hosts[host].messages_sent, hosts[host].elements_received, hosts[host].messages_received);
  return text;
}

// Lists the algorithms that sum in the same order as this algorithm. The results of these algorithms are bit-identical. For
// 16-bit types, fewer algorithms are bit-identical, because these types round once per step.
std::string bitwise_equals(const Algorithm& algorithm, const Problem& problem) {
  std::string text;
  for (const Rounding rounding : {Rounding::every_addition, Rounding::once_a_step}) {
    std::vector<std::string> names;
    for (const auto& members : bitwise_classes(problem, rounding))
      if (std::find(members.begin(), members.end(), &algorithm) != members.end())
        for (const Algorithm* other : members)
          if (other != &algorithm) names.push_back(other->name);
    text += fmt::format("  {} as {}\n", rounding == Rounding::once_a_step ? "f16, bf16: same bits" : "f32, f64:  same bits",
                        names.empty() ? "no other" : join(names, ", "));
  }
  return text;
}

}  // namespace

std::string describe_algorithm(const Algorithm& algorithm, const std::vector<Schedule>& ranks, bool steps) {
  const Problem& problem = ranks.at(0).problem();
  std::string text = on_screen(fmt::format("{} {}: {}\n{} ranks{}, {} elements{}\n\n", name_of(algorithm.what),
                                           algorithm.name, algorithm.about, problem.size, words_for_hosts(problem),
                                           problem.blocks.total(), problem.in_place ? ", in place" : ""));
  if (steps)
    for (const Schedule& schedule : ranks)
      text += fmt::format("rank {}, sends {} elements\n{}\n", schedule.problem().rank, schedule.elements_sent(),
                          schedule.describe());
  else if (problem.size <= most_drawn)
    text += draw_text(ranks) + "\n";
  else
    text += fmt::format("(rounds are drawn for up to {} ranks)\n\n", most_drawn);
  std::string words = price_of(ranks) + between_hosts(ranks);
  if (const std::string order = describe_reduction_order(ranks, most_orders); !order.empty())
    words += "order\n" + order + bitwise_equals(algorithm, problem);
  return text + on_screen(words);
}

std::string list_algorithms(const std::vector<const Algorithm*>& algorithms,
                            const std::function<Problem(Collective)>& problem_for) {
  TextTable table({"collective", "algorithm", "rounds", "messages", "α", "nβ", "nγ", "about"});
  for (const Algorithm* algorithm : algorithms) {
    const Problem problem = problem_for(algorithm->what);
    std::vector<std::string> cells{name_of(algorithm->what), algorithm->name, "does not fit", "", "", "", "",
                                   algorithm->about};
    if (fits(*algorithm, problem)) {
      const auto ranks = plan_all_ranks(*algorithm, problem);
      const Terms terms = terms_of(ranks);
      cells[2] = std::to_string(find_rounds(ranks).count);
      cells[3] = over_ranks(ranks, &Volume::messages_sent);
      cells[4] = fmt::format("{:.4g}", terms.alpha);
      cells[5] = fmt::format("{:.4g}", terms.beta);
      cells[6] = fmt::format("{:.4g}", terms.gamma);
    }
    table.add(std::move(cells));
  }
  std::string text =
      "messages: sent by one rank; α, nβ, nγ: the time if only latency, only bandwidth or only arithmetic cost "
      "anything\n\n" +
      table.print("text");
  if (std::ranges::any_of(algorithms, [](const Algorithm* algorithm) { return reduces(algorithm->what); }))
    text += R"(
native is the collective of the MPI or NCCL library. auto uses native where tune found it fastest, but never for sums of u8
(Open MPI saturates, chorale wraps around), nor for min and max of floats (a library may lose a NaN).
)";
  return text;
}

}  // namespace chorale
