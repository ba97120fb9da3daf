#include "parallel/layout/axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

const AxisTable& all_axes() {
  static const AxisTable table{
      {.name = "dp",
       .noun = "data",
       .divides = Divides::batch,
       .depth = 2,
       .takes_rest = true,
       .grids = dense_grid,
       .zero = true,
       .flag = "data-parallel replicas of the model, among which ZeRO shards; 0: all remaining ranks",
       .coordinate = "index of the replica, within its group if there are several"},
      {.name = "rep",
       .noun = "repeat",
       .divides = Divides::batch,
       .depth = 1,
       .repeats = true,
       .flag = "groups of dp replicas; ZeRO shards inside a group, and groups hold the same shards (HSDP, MiCS); 0: as the "
               "layout says",
       .coordinate = "index of the group of replicas among which ZeRO shards",
       .megatron = "num-distributed-optimizer-instances"},
      {.name = "tp",
       .noun = "tensor",
       .divides = Divides::width,
       .depth = 4,
       .flag = "tensor-parallel ranks, which share each layer; 0: as the layout says",
       .coordinate = "index among the tensor ranks",
       .megatron = "tensor-model-parallel-size",
       .deepspeed = "tensor_parallel",
       .deepspeed_remark = "--tp"},
      {.name = "pp",
       .noun = "pipeline",
       .divides = Divides::layers,
       .depth = 0,
       .flag = "pipeline stages; 0: as the layout says",
       .coordinate = "pipeline stage",
       .megatron = "pipeline-model-parallel-size"},
      {.name = "cp",
       .noun = "context",
       .divides = Divides::tokens,
       .depth = 3,
       .grids = dense_grid,
       .zero = true,
       .flag = "context-parallel ranks, which divide the tokens of each sequence; 0: as the layout says",
       .coordinate = "index among the ranks that divide a sequence",
       .megatron = "context-parallel-size"},
      {.name = "ep",
       .noun = "expert",
       .divides = Divides::experts,
       .depth = 3,
       .grids = expert_grid,
       .flag = "expert-parallel ranks: replicas that divide the experts among themselves; 0: as the layout says",
       .coordinate = "index among the ranks that divide the experts",
       .megatron = "expert-model-parallel-size",
       .deepspeed = "expert_parallel",
       .deepspeed_remark = "--ep"},
      {.name = "edp",
       .noun = "expert data",
       .divides = Divides::batch,
       .depth = 2,
       .takes_rest = true,
       .grids = expert_grid,
       .zero = true},
  };
  return table;
}

AxisTable::AxisTable(std::initializer_list<AxisRow> rows) {
  for (const AxisRow& row : rows) add(row);
}

void AxisTable::add(const AxisRow& row) {
  require(size() < most_axes, "the table of axes has no room for {}: most_axes is {}", row.name, most_axes);
  rows_.push_back(row);
}

AxisOrder AxisTable::parse_order(std::string_view text, char separator) const {
  const std::vector<std::string> known = names_of(in_grids(dense_grid)),
                                 example{names_of(dividing(Divides::width)).front(), known.front()};
  AxisOrder order;
  const auto refuse = [&](const std::string& what) {
    usage_error(what, fmt::format("the order given is \"{}\"", text),
                fmt::format("name two or more of the axes {}, from the outermost to the innermost: {}", join(known, ", "),
                            join(example, {&separator, 1})));
  };
  for (const std::string& name : split(text, separator)) {
    if (!std::ranges::count(known, name)) refuse(fmt::format("no axis is called \"{}\"", name));
    if (std::ranges::count(order, name)) refuse(fmt::format("the order names {} twice", name));
    order.push_back(name);
  }
  if (order.size() < 2) refuse("one axis alone has no order");
  return order;
}

// Axes that belong to only one grid stay together. If the order names some of these axes, the others get the depth of the
// innermost of the named ones.
std::array<int, most_axes> AxisTable::depths(const AxisOrder& order) const {
  std::array<int, most_axes> places{}, depths{};
  std::vector<int> exchanged;
  for (std::size_t row = 0; row < size(); ++row) places[row] = rows_[row].depth;
  for (const std::string& name : order) exchanged.push_back(rows_[row_of(name)].depth);
  std::ranges::sort(exchanged);
  int together = -1;  // depth of the axes that belong to only one grid; −1 if the order names none of them
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t row = row_of(order[i]);
    places[row] = exchanged[i];
    if (rows_[row].grids != both_grids) together = exchanged[i];
  }
  for (std::size_t row = 0; row < size(); ++row) {
    const bool moves = together >= 0 && rows_[row].grids != both_grids && !std::ranges::count(order, rows_[row].name);
    depths[row] = (moves ? together : places[row]) * static_cast<int>(most_axes) + rows_[row].depth;
  }
  return depths;
}

std::size_t AxisTable::row_of(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, &AxisRow::name);
  require(found != rows_.end(), "no axis is called {}", name);
  return static_cast<std::size_t>(found - rows_.begin());
}

AxisSet AxisTable::set_of(const std::vector<std::string>& names) const {
  AxisSet set = 0;
  for (const std::string& name : names) set |= 1U << row_of(name);
  return set;
}

std::vector<std::string> AxisTable::names_of(AxisSet set) const {
  std::vector<std::string> names;
  for (std::size_t row = 0; row < size(); ++row)
    if (contains(set, row)) names.emplace_back(rows_[row].name);
  return names;
}

template <class Holds>
AxisSet AxisTable::where(const Holds& holds) const {
  AxisSet set = 0;
  for (std::size_t row = 0; row < size(); ++row)
    if (holds(rows_[row])) set |= 1U << row;
  return set;
}

AxisSet AxisTable::sharding() const {
  return where([](const AxisRow& row) { return row.zero; });
}

AxisSet AxisTable::repeating() const {
  return where([](const AxisRow& row) { return row.repeats; });
}

AxisSet AxisTable::in_grids(unsigned grids) const {
  return where([&](const AxisRow& row) { return (row.grids & grids) != 0; });
}

AxisSet AxisTable::dividing(Divides what, unsigned grids) const {
  return in_grids(grids) & where([&](const AxisRow& row) { return row.divides == what; });
}

AxisSet AxisTable::holding_copies(unsigned grids) const {
  return dividing(Divides::batch, grids) | dividing(Divides::tokens, grids);
}

unsigned AxisTable::grid_of(AxisSet cut) const { return (cut & ~in_grids(dense_grid)) == 0 ? dense_grid : expert_grid; }

}  // namespace chorale
