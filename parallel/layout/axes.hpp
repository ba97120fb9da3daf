// The table of axes along which ranks share a model and its data. A table row holds everything that the rest of the program
// knows about an axis. Layout strings, flags, the list of legal layouts, the mesh, `--backend tp=…` and a record's
// coordinates are derived from the rows. To add an axis, add a row. If the axis does more than divide the batch, also add a
// file with its strategy.
//
// The table describes two grids of the same ranks: one for the dense layers, and one for the expert layers. An axis belongs
// to one grid or to both; in either grid, the product of the axis sizes is the number of ranks.
//
//                outermost                       innermost
//   dense        pp     rep     dp       cp      tp             dp · cp = edp · ep
//   experts      pp     rep     edp      ep      tp
//   depth        0      1       2        3       4
//
// So two ranks with copies of a dense layer hold different experts if their ep coordinates differ. No layout string or flag
// gives the size of edp, because this size follows from the other sizes. Without ep, both grids are the same, and the axes
// that belong only to the expert grid have no groups.
//
// ZeRO shards dense layers along dp and cp, and experts along edp. Ranks that differ only along rep hold the same shards. So
// the number of data-parallel replicas is dp times rep. Under ZeRO-3, a rep larger than 1 is the hybrid sharding of FSDP
// (HSDP) and MiCS. rep and dp are separate axes because their calls differ. Calls along rep occur only once per step, and
// they can connect ranks on different hosts with a different backend. The axis rep is outside dp. So ranks along dp, which
// gather values in every micro-batch, are neighbors.
//
// By default, axes are ordered by depth. An AxisOrder states a different order by naming axes from the outermost to the
// innermost. The named axes exchange positions among themselves, and all unnamed axes keep their positions. For example,
// tp,pp means tp,rep,dp,cp,pp. But axes that belong to only one grid (dp, cp, ep, edp) stay together. For example, tp,dp
// means pp,rep,tp,dp,cp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

// The quantity that the ranks along an axis divide among themselves.
enum class Divides : std::uint8_t { batch, tokens, width, layers, experts };

enum Grids : unsigned { dense_grid = 1, expert_grid = 2, both_grids = 3 };

struct AxisRow {
  const char* name;  // used in layout strings, as a flag and as the name of the axis's groups
  const char* noun;  // used in messages: "tensor 3"
  Divides divides;
  int depth;                // default position of the axis in its grid; 0 is the outermost
  bool takes_rest = false;  // if true and a layout string omits the axis, its size is ranks / (other sizes of its grid)
  unsigned grids = both_grids;
  bool zero = false;            // true if ZeRO shards optimizer state, gradients and values among the axis's ranks
  bool repeats = false;         // true if the axis's ranks hold the same shards; such an axis has size 1 without ZeRO
  const char* flag = "";        // help text of the axis's flag
  const char* coordinate = "";  // the record's description of a rank's coordinate on the axis
  const char* megatron = "";    // Megatron-LM's option for the axis
  const char* deepspeed = "";   // section of DeepSpeed's config file for the axis
  const char* deepspeed_remark = "";

  // Whether the size of the axis always follows from the other sizes. If so, layout strings and flags never give the size.
  bool follows() const { return takes_rest && grids == expert_grid; }
  // The value in Layout::sizes if no layout string or flag gives the size. The value 0 means that the size is to be
  // inferred.
  std::int64_t unnamed_size() const { return takes_rest && !follows() ? 0 : 1; }
};

inline constexpr std::size_t most_axes = 8;
// A set of axes, one bit per row of the table. Groups of ranks are looked up by their set of axes.
using AxisSet = std::uint32_t;
inline bool contains(AxisSet set, std::size_t row) { return (set >> row & 1U) != 0; }
using AxisOrder = std::vector<std::string>;  // axes of the dense grid; an empty list means the default order

// The rows are in the order in which layout strings list the axes. A table must outlive all layouts that refer to it.
class AxisTable {
 public:
  AxisTable(std::initializer_list<AxisRow> rows);
  void add(const AxisRow& row);  // throws if the table already has `most_axes` rows

  std::size_t size() const { return rows_.size(); }
  const AxisRow& operator[](std::size_t row) const { return rows_[row]; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

  std::size_t row_of(std::string_view name) const;  // throws if there is no such axis
  AxisSet set_of(const std::vector<std::string>& names) const;
  std::vector<std::string> names_of(AxisSet set) const;

  AxisSet in_grids(unsigned grids) const;  // the axes that belong to at least one of `grids`
  AxisSet dividing(Divides what, unsigned grids = dense_grid) const;
  // The axes that divide the batch or its tokens. The ranks along such an axis hold copies of a parameter and sum its
  // gradient, unless the parameter is sharded along the axis.
  AxisSet holding_copies(unsigned grids) const;
  AxisSet sharding() const;   // the axes along which ZeRO shards
  AxisSet repeating() const;  // the axes along which ranks hold the same ZeRO shards
  // Returns the grid to which a parameter belongs. `cut`: the axes along which the parameter is sharded. If all these axes
  // are in the dense grid, returns the dense grid; otherwise returns the expert grid.
  unsigned grid_of(AxisSet cut) const;

  // Parses an order such as tp,dp or tp-dp. Throws a usage error if a name is unknown or repeated, or if there is only one
  // name.
  AxisOrder parse_order(std::string_view text, char separator) const;
  // Returns a depth for each row of the table. An axis with a smaller depth is further out. Only depths of axes in the same
  // grid can be compared.
  std::array<int, most_axes> depths(const AxisOrder& order) const;

 private:
  template <class Holds>
  AxisSet where(const Holds& holds) const;

  std::vector<AxisRow> rows_;
};

const AxisTable& all_axes();

}  // namespace chorale
