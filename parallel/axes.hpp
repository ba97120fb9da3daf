// The table of axes: the directions in which the ranks of a run may share a model and its data. A row is all that the rest
// of the program knows about an axis. Layout words, flags, the list of legal layouts, the mesh, `--backend tp=…` and a
// record's coordinates are derived from the rows. To add an axis, add a row, and a file with its strategy if it does more
// than divide the batch.
//
//   outermost          innermost      The dense grid and the expert grid lie over the same ranks. They share the axes that
//   pp          dp          tp        belong to both, and have the same product. Example: with dp = edp · ep, the ranks that
//   depth 0     depth 1     depth 2   hold replicas of the dense layers hold different experts.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

// What is divided among the ranks along an axis.
enum class Divides : std::uint8_t { batch, tokens, width, layers, experts };

enum Grids : unsigned { dense_grid = 1, expert_grid = 2, both_grids = 3 };

struct AxisRow {
  const char* name;  // in layout words, as a flag, and as the name of its groups
  const char* noun;  // in messages: "tensor 3"
  Divides divides;
  int depth;                // in the grid; 0 is the outermost
  bool takes_rest = false;  // if left out, its size is inferred: world / (other axes of its grid)
  unsigned grids = both_grids;
  bool zero = false;            // true: ZeRO shards among its ranks; false: they keep copies
  const char* flag = "";        // help text
  const char* coordinate = "";  // the record's description of a rank's place along it
  const char* megatron = "";    // Megatron-LM's option for it
  const char* deepspeed = "";   // DeepSpeed's section for it
  const char* deepspeed_remark = "";
};

inline constexpr std::size_t most_axes = 8;
using AxisTable = std::vector<AxisRow>;  // in the order of layout words; must outlive all layouts that refer to it

const AxisTable& all_axes();

// A set of axes, one bit per row. Groups and buckets are compared by it.
using AxisSet = std::uint32_t;
std::size_t row_of(const AxisTable& table, std::string_view name);  // throws if there is no such axis
AxisSet set_of(const AxisTable& table, const std::vector<std::string>& names);
AxisSet axes_of(const AxisTable& table, unsigned grids);  // the axes of any of these grids
AxisSet dividing(const AxisTable& table, Divides what, unsigned grids = dense_grid);
// The grid of a parameter that is cut along these axes.
unsigned grid_of(const AxisTable& table, AxisSet cut);
// The axes that divide the batch or its tokens. Ranks along them hold copies of a parameter, and its gradient is summed over
// them, unless they cut the parameter.
AxisSet holding_copies(const AxisTable& table, unsigned grids);
AxisSet sharding(const AxisTable& table);  // the axes among whose ranks ZeRO shards
std::vector<std::string> names_of(const AxisTable& table, AxisSet set);
inline bool contains(AxisSet set, std::size_t row) { return (set >> row & 1U) != 0; }

}  // namespace chorale
