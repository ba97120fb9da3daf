// The table of axes: along which directions the ranks of a run may share a model and its data. A row says all that the rest of the program
// knows of an axis: the layout's word, the flags, the list of legal layouts, the mesh, `--backend tp=…` and a record's coordinates are made
// from these rows. To add an axis, add a row, and a file with its strategy if it does more than divide the batch.
//
//   outermost                       innermost       Several grids may lie over the same ranks. They share the axes that belong to both,
//   pp      dp              tp                      and multiply to the same number: dp = edp · ep, for example, would let experts be
//   └ depth 0 ┘ └ 1 ┘       └ 2 ┘                   spread over the ranks that hold replicas of everything else.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

// What the ranks along an axis do not have in common.
enum class Divides : std::uint8_t { batch, tokens, width, layers, experts };

enum Grids : unsigned { dense_grid = 1, expert_grid = 2, both_grids = 3 };

struct AxisRow {
  const char* name;  // its letters in a layout's word, its flag, and the name of its groups
  const char* noun;  // in messages: "tensor 3"
  Divides divides;
  int depth;                // in the grid, from the outermost
  bool takes_rest = false;  // left out, it gets the ranks that the other axes of its grid leave
  unsigned grids = both_grids;
  bool zero = false;            // ZeRO shards among its ranks; without, they keep copies
  const char* flag = "";        // what `--help` says
  const char* coordinate = "";  // what a record says of a rank's place along it
  const char* megatron = "";    // the option's name there
  const char* deepspeed = "";   // the section's, and what it comes to here
  const char* deepspeed_remark = "";
};

inline constexpr std::size_t most_axes = 8;
using AxisTable = std::vector<AxisRow>;  // in the order of a layout's word; it outlives all layouts that are made of it

const AxisTable& all_axes();

// Axes as a set, a bit for each row: what groups and buckets are compared by.
using AxisSet = std::uint32_t;
std::size_t row_of(const AxisTable& table, std::string_view name);  // misuse where there is none
AxisSet set_of(const AxisTable& table, const std::vector<std::string>& names);
AxisSet axes_of(const AxisTable& table, unsigned grids);  // that belong to one of them
AxisSet dividing(const AxisTable& table, Divides what, unsigned grids = dense_grid);
// The grid that a parameter lies on, by the axes that cut it.
unsigned grid_of(const AxisTable& table, AxisSet cut);
// Those whose ranks have different tokens and the same parameters, unless a parameter says that they cut it: its gradient is summed over them.
AxisSet holding_copies(const AxisTable& table, unsigned grids);
AxisSet sharding(const AxisTable& table);  // ZeRO's
std::vector<std::string> names_of(const AxisTable& table, AxisSet set);
inline bool contains(AxisSet set, std::size_t row) { return (set >> row & 1U) != 0; }

}  // namespace chorale
