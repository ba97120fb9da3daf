#include "experiments/prove/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <sstream>

#include "layers/gpt.hpp"
#include "parallel/mesh/mesh.hpp"
#include "src/base/text.hpp"

namespace chorale::prove {
namespace {

std::vector<ParameterPointer> in_backward_order(const ModelShape& shape, std::int64_t tensor_ranks) {
  const Sharding experts{.axes = all_axes().names_of(all_axes().dividing(Divides::experts, expert_grid))};
  std::vector<ParameterPointer> all = build_gpt(shape, Recompute::none, {0, tensor_ranks}, experts).parameters();
  std::reverse(all.begin(), all.end());
  return all;
}

std::vector<std::string> differing_tensors(const StepState& expected, const StepState& seen) {
  std::vector<std::string> names;
  for (const auto& [name, print] : expected.prints) {
    const auto theirs = seen.prints.find(name);
    if (theirs == seen.prints.end() || theirs->second != print) names.push_back(name);
  }
  for (const auto& [name, print] : seen.prints)
    if (!expected.prints.contains(name)) names.push_back(name);
  return names;
}

// Extracts the parameter's name: "mean/norm.gain" is a state of the parameter "norm.gain", and "norm.gain@dp1" is a copy of
// this parameter.
std::string parameter_of(const std::string& tensor) {
  const std::string whole = tensor.substr(0, tensor.find('@'));
  return whole.substr(whole.find('/') + 1);  // npos + 1 is 0
}

constexpr const char* choices = "choices";  // how often each expert was chosen: parallel/state/fingerprint.hpp

bool is_gradient(const std::string& tensor) { return tensor.starts_with("gradient/"); }

std::string first_of(const std::vector<std::string>& names, const ModelShape& shape) {
  for (const ParameterPointer& p : in_backward_order(shape, 1))
    for (const std::string& name : names)
      if (parameter_of(name) == p->name) return name;
  return names.front();
}

// Appends a collective and the axes on which it runs, such as "dp all_reduce". Axes with one rank are left out; if no axis
// remains, appends nothing.
void add_call(std::vector<std::string>& calls, const Layout& layout, AxisSet set, const char* call) {
  set = layout.divided(set);
  if (set != 0) calls.push_back(join(layout.axes->names_of(set), "+") + " " + call);
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

}  // namespace

std::string History::text() const {
  std::string text = fmt::format("{} {} {}\n", seconds, failed_at, join(split(failure, '\n'), ";"));
  for (const StepState& step : steps) {
    text += fmt::format("step {} {} {}\n", step.prints.size(), std::bit_cast<std::uint64_t>(step.loss),
                        std::bit_cast<std::uint64_t>(step.gradient_norm));
    for (const auto& [name, print] : step.prints) text += fmt::format("{} {}\n", name, print);
  }
  return text;
}

History History::read(const std::string& text) {
  History history;
  std::istringstream in(text);
  (in >> history.seconds >> history.failed_at).ignore();  // skips the space
  std::getline(in, history.failure);
  for (std::string word; in >> word;) {
    std::size_t prints = 0;
    std::uint64_t loss = 0, norm = 0;
    in >> prints >> loss >> norm;
    StepState step{std::bit_cast<double>(loss), std::bit_cast<double>(norm), {}};
    for (std::string name; step.prints.size() < prints && in >> name;) in >> step.prints[name];
    history.steps.push_back(std::move(step));
  }
  return history;
}

std::optional<Difference> first_difference(const History& expected, const History& seen, const ModelShape& shape) {
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i + 1);
    if (i >= seen.steps.size() && !seen.failure.empty()) break;
    if (i >= seen.steps.size()) return Difference{step, "its end", 0};
    const StepState &a = expected.steps[i], &b = seen.steps[i];
    const std::vector<std::string> names = differing_tensors(a, b);
    const auto found = [&](const std::vector<std::string>& of) {
      return Difference{step, first_of(of, shape), static_cast<std::int64_t>(of.size())};
    };
    std::vector<std::string> gradients;
    std::ranges::copy_if(names, std::back_inserter(gradients), is_gradient);
    if (!same_bits(a.loss, b.loss)) return Difference{step, "loss", 0};
    if (std::ranges::count(names, choices) > 0) return Difference{step, choices, 0};
    if (!gradients.empty()) return found(gradients);
    if (!same_bits(a.gradient_norm, b.gradient_norm)) return Difference{step, "gradient norm", 0};
    if (!names.empty()) return found(names);
  }
  return std::nullopt;
}

std::string collectives_behind(const std::string& tensor, const ModelShape& shape, const Layout& layout) {
  const bool is_loss = tensor == "loss", is_norm = tensor == "gradient norm",
             is_total = is_loss || is_norm || tensor == choices || parameter_of(tensor) == "expert_bias";
  const AxisTable& axes = *layout.axes;
  const AxisSet width = axes.dividing(Divides::width), stages = axes.dividing(Divides::layers),
                experts = axes.dividing(Divides::experts, expert_grid), in_use = axes.in_grids(layout.grids()),
                shards = layout.zero > 0 ? layout.sharded() & in_use : 0;
  std::vector<std::string> sums, ways;  // collectives that sum the tensor, and collectives that carry its inputs
  if (layout.ranks() > 1 && is_total) sums.emplace_back("world all_reduce");
  if (!is_norm) {
    add_call(ways, layout, width, layout.sequence ? "reduce_scatter and all_gather" : "all_reduce");
    add_call(ways, layout, axes.dividing(Divides::tokens), "calls of attention");
    add_call(ways, layout, experts, "all_to_all");
    add_call(ways, layout, stages, "send");
    if (layout.zero == 3 || is_loss) add_call(ways, layout, shards, "all_gather of the weights");
  }
  for (const ParameterPointer& p : in_backward_order(shape, layout.shards())) {
    if (parameter_of(tensor) != p->name) continue;
    if (!is_gradient(tensor)) {  // gradients and their norm were compared earlier, and were equal
      sums = {"the optimizer, which sums nothing over ranks"};
      ways.clear();
      if (layout.zero != 3) add_call(ways, layout, shards, "all_gather of the weights");
      break;
    }
    const AxisSet cut = layout.divided(axes.set_of(p->cut_by)), copies = axes.holding_copies(axes.grid_of(cut)) & ~cut;
    if (p->of_heads || (layout.sequence && p->of_stream)) add_call(sums, layout, width, "all_reduce");
    add_call(sums, layout, copies & shards, "reduce_scatter");
    add_call(sums, layout, copies & ~shards, "all_reduce");
    if (p->tied && end_stages(layout).size() > 1) sums.emplace_back("ends all_reduce");
    break;
  }
  if (sums.empty() && ways.empty()) return "no collective: each rank computes it alone";
  if (ways.empty()) return join(sums, ", ");
  return (sums.empty() ? "" : join(sums, ", ") + "; or before: ") + join(ways, ", ");
}

}  // namespace chorale::prove
