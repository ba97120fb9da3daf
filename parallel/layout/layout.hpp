// A layout states how the ranks of a run share a model and its data. In options and records, a layout is one string:
//
//   dp2.tp2.pp2.z1.sp       8 ranks: 2 replicas with ZeRO-1; each has 2 pipeline stages of 2 tensor ranks; sequence parallel
//   dp4.rep2.z3             8 replicas: ZeRO-3 shards among 4, and 2 such groups hold the same shards
//   dp4.rep2.z3.hpz         ZeRO-3 shards among all 8, and each group of 4 also keeps a copy for the backward pass (ZeRO++)
//
// The axes are rows of a table (axes.hpp). From the outermost to the innermost, the axes are pp, rep, dp, cp and tp, unless
// the string states a different order, as dp2.tp2.tp-dp does. The product of the axis sizes is the number of ranks. If dp is
// omitted, its size is inferred.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <chorale/model.hpp>
#include "parallel/layout/axes.hpp"
#include "parallel/layout/context_scheme.hpp"
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

struct Layout {
  const AxisTable* axes = &all_axes();
  // By row of `axes`; 0: to be inferred. Always 1 if the axis follows(): see size().
  std::array<std::int64_t, most_axes> sizes = {1, 1, 1, 1, 1, 1, 1, 1};
  int zero = 0;           // ZeRO stage, 0 to 3
  bool hpz = false;       // ZeRO-3 also shards along rep, and each group keeps a copy
  bool sequence = false;  // sequence parallelism over the tensor axis
  const PipelineAlgorithm* schedule = &usual_schedule();
  std::int64_t chunks = 1;  // model chunks per stage
  AxisOrder order = {};     // nesting of the axes; empty: the usual order

  std::int64_t& operator[](std::string_view axis);  // throws if the axis's size follows from other sizes
  std::int64_t operator[](std::string_view axis) const { return size(axes->row_of(axis)); }
  // The size of the axis that divides this quantity. Of several such axes, it is the one whose size can be inferred.
  std::int64_t& size_dividing(Divides what);
  std::int64_t size(std::size_t row) const;  // sizes[row], or computed from other sizes if the axis follows(); 0: unknown
  // The product of these axes' sizes; 0 until all are inferred. Throws a usage error if the product is larger than any
  // number of ranks can be.
  std::int64_t along(AxisSet set) const;
  std::int64_t replicas() const { return along(axes->dividing(Divides::batch)); }
  std::int64_t shards() const { return along(axes->dividing(Divides::width)); }
  std::int64_t context_ranks() const { return along(axes->dividing(Divides::tokens)); }
  // The number of copies of a dense layer's shard.
  std::int64_t copies() const { return along(axes->holding_copies(dense_grid)); }
  // sharded() returns the axes along which ZeRO shards. zero_ranks() returns the number of ranks among which ZeRO shards a
  // dense layer. repeats() returns the number of dp·cp groups.
  AxisSet sharded() const { return axes->sharding() | (hpz ? axes->repeating() : 0); }
  std::int64_t zero_ranks() const { return along(sharded() & axes->in_grids(dense_grid)); }
  std::int64_t repeats() const { return along(axes->repeating()); }
  std::int64_t stages() const { return along(axes->dividing(Divides::layers)); }
  std::int64_t expert_ranks() const { return along(axes->dividing(Divides::experts, expert_grid)); }
  // Without expert parallelism, both grids are the same, so axes that belong only to the expert grid have no groups.
  unsigned grids() const { return expert_ranks() > 1 ? both_grids : dense_grid; }
  AxisSet divided(AxisSet set) const;  // removes axes of size 1 from the set
  std::int64_t ranks() const;
  // The axes with more than one rank, from the outermost to the innermost.
  AxisOrder outwards_in() const;
  bool has_usual_order() const;
  // Whether the groups of ranks along edp and ep equal the groups along dp and cp. With expert parallelism, they differ if
  // the order puts tp between dp and cp.
  bool grids_agree() const;
  bool operator==(const Layout& other) const;  // ignores where `order` puts axes of size 1
};

// Returns the layout string, such as "dp2.tp2.pp2.z1.sp". The string contains dp and every other part that differs from its
// default.
std::string to_string(const Layout& layout);
// A parsed layout string: the layout, and the parts that the string names ("dp", "z", "v", "schedule", "order").
struct LayoutWord {
  Layout layout;  // sizes that must be inferred are 0
  std::set<std::string> named;
};
// Parses a layout string. The parts of the string are axes with sizes, z0 to z3, hpz, sp, vN (N chunks per stage), an order
// of axes (tp-dp) and the name of a schedule. Each part occurs at most once, and the parts can be in any order. If a part is
// invalid, throws a usage error that names the part and the reason.
LayoutWord read_layout_word(const std::string& word, const AxisTable& axes = all_axes());
// Returns the layout on `world` ranks that the string describes. If `world` is 0, the number of ranks is unknown, and no
// size is inferred.
Layout parse_layout(const std::string& word, std::int64_t world, const AxisTable& axes = all_axes());
std::vector<std::string> schedule_names();  // all pipeline schedules
// Returns the shape of the layout's pipeline. The pipeline schedule determines how model parts are placed on stages.
PipelineShape pipeline_of(const Layout& layout, std::int64_t micro_batches = 1);

// The model, the batch and the number of ranks that a layout must fit.
struct LayoutLimits {
  ModelShape shape;
  std::int64_t world = 1, global_batch = 1;
  std::int64_t micro_batch = 0;  // sequences; 0: default_micro_batch()
  const AxisTable* axes = &all_axes();
  ContextOptions context = {};  // how ranks divide the tokens of a sequence
  bool one_host = true;         // false as long as it is not known which ranks share a host
};

// The number of sequences in a micro-batch if the user gives none: one in a pipeline, otherwise a replica's share of the
// batch.
std::int64_t default_micro_batch(const Layout& layout, std::int64_t global_batch);

// Throws a usage error if the layout does not fit. The error suggests the nearest layouts that fit the same number of ranks.
void require_fits(const Layout& layout, const LayoutLimits& limits);
bool fits(const Layout& layout, const LayoutLimits& limits);
// Replaces a size of 0 by the number of ranks divided by the other sizes. If the quotient is not an integer, throws a usage
// error that suggests layouts for that number of ranks. If limits are given, suggests only layouts that satisfy them.
Layout inferred(Layout layout, std::int64_t world);
Layout inferred(Layout layout, const LayoutLimits& limits);
// Changes dp and rep so that each group among which ZeRO shards (dp·cp) has `ranks` ranks. The numbers of replicas and
// context ranks stay the same. If such groups are impossible, throws a usage error about the option `flag` that names the
// possible sizes.
Layout with_zero_ranks(Layout layout, std::int64_t ranks, const char* flag = "shard-size");
// Returns all layouts that fit, with and without sp, and with ZeRO stages 0 to 3. If there is only one copy of each dense
// layer, only stages 0 and 3 are listed. Layouts in which rep repeats groups of one rank are omitted, because the same ranks
// without ZeRO send equally many bytes.
std::vector<Layout> all_layouts(const LayoutLimits& limits);
std::vector<std::int64_t> divisors(std::int64_t n);  // in ascending order: the sizes that an axis of n ranks can have
// The legal orders of all axes with more than one rank; the usual order is the first.
std::vector<AxisOrder> orders_of(const Layout& layout);

}  // namespace chorale
