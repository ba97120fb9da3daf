// Optimizers. An UpdateRule is the formula of an optimizer; it works on flat ranges of elements. The Optimizer keeps the
// state of the parameters that a rank owns and applies the rule to them. The Optimizer updates complete parameters, or
// ranges of parameters under ZeRO.
//
//   16-bit parameters   with masters      update an f32 master copy and cast it to the parameter
//                       without masters   update bf16 weights in place with stochastic rounding (saves 4 B/param)
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chorale/optimizer.hpp>
#include "layers/parameter.hpp"
#include "src/tier/windows.hpp"

namespace chorale {

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::vector<std::string> moments() const = 0;         // the names of the moments in checkpoints
  virtual void begin_step(std::int64_t step, double rate) = 0;  // `step` counts from 1
  virtual void update(std::span<const UpdateRange> ranges, const Queue& queue) const = 0;
};

std::unique_ptr<UpdateRule> adamw_rule(double beta1, double beta2, double epsilon, double decay);
std::unique_ptr<UpdateRule> sgd_rule(double momentum, double decay);
std::unique_ptr<UpdateRule> rule_of(const OptimizerOptions& options);

// The elements in [`first`, `first` + `count`) of a parameter's shard (this rank's part of the parameter), numbered row by
// row.
struct Owned {
  ParameterPointer parameter;
  std::int64_t first, count;
  Tensor value, gradient;
  // The bucket that contains these elements, and the flat tensors of that bucket, in which several parameters follow each
  // other. The elements start at index `at` of the flat tensors. In a list of Owned, the entries of one bucket are adjacent.
  std::size_t bucket = 0;
  Tensor all_values = {}, all_gradients = {};
  std::int64_t at = 0;
};

// Settings for an update whose tensors are in a slow memory tier, or that overlaps other computation of the program. In both
// cases, the update proceeds in windows of `elements` elements (src/tier/windows.hpp).
struct OptimizerTier {
  Allocator* compute = nullptr;    // the memory in which the update computes; null for the memory of the layers
  Allocator* states = nullptr;     // where states are stored; null if they are in memory
  TierTraffic* traffic = nullptr;  // if it is null, one pass updates all elements, and no tensor is in a slow tier
  std::int64_t elements = 1 << 20;
  bool keeps_old = false;  // keeps the old states and values, so that an update can be rolled back
  bool delays = false;     // values change only in publish(); requires master copies of all weights
};

class Optimizer {
 public:
  Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Owned>& owned, Allocator& memory, std::uint64_t seed,
            const Queue& queue = {}, bool masters = true, const OptimizerTier& tier = {});

  // scale: a factor for the gradients. The gradients are also multiplied by the unit of their sums (Numerics::unit).
  void step(double rate, double scale, const Numerics& numerics, const Queue& queue);
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  // The functions from begin() to finish() perform the same step as step(), in parts if there are windows. The program can
  // compute between begin() and finish().
  void begin(double rate, double scale, const Numerics& numerics, const Queue& queue);
  void start(std::size_t bucket);      // starts the update of a bucket (Owned::bucket)
  void start();                        // starts the updates of all buckets
  void progress();                     // updates the windows whose data have arrived; never waits
  void finish(std::size_t bucket);     // waits until the gradients of the bucket are no longer needed
  void finish();                       // starts all updates that have not been started, and waits for all
  void roll_back(const Queue& queue);  // undoes the step after finish(); requires OptimizerTier::keeps_old

  // Visits all tensors that a checkpoint must hold, and passes their names: "block.0…" for weights, "moment1/block.0…" for
  // moments. If updates are delayed, also visits "value/block.0…". Reads tensors in a slow tier from that tier.
  void each_state(const std::function<void(const std::string&, const Owned&, const Tensor&)>& visit) const;
  void publish(const Queue& queue);  // casts the master copies to the parameters' type and stores the results in the
                                     // parameters

 private:
  struct State {
    Owned owned;
    Tensor weights;  // the master copy, or the parameter itself
    std::vector<Tensor> moments;
    bool is_master() const { return weights.storage() != owned.value.storage(); }
  };
  // Flat tensors that contain several states one after another: those with indices in [`first`, `last`).
  struct Flat {
    std::size_t bucket, first, last;
    Tensor values, gradients, weights;  // weights: the master copies, if there are any
    std::vector<Tensor> moments;
    // With keeps_old, an update reads the weights and moments and writes the tensors below. Then the two sets are swapped.
    // If values have no master copies, they are copied instead of swapped, because the layers hold their addresses.
    Tensor other_weights, old_values;
    std::vector<Tensor> other_moments;
    bool started = false;
    void exchange() {
      std::swap(weights, other_weights);
      std::swap(moments, other_moments);
    }
  };
  // The part of a state inside a window.
  struct Piece {
    const State& state;
    std::int64_t first, count;  // range of the state's elements that is in the window
    std::int64_t at;            // position of this range in the window
  };
  Flat& flat_of(const Owned& owned, bool has_master, const std::function<Tensor(std::int64_t)>& state);
  std::vector<Piece> pieces_in(const Window& window) const;
  void start_flat(std::size_t flat);
  void without_waits(std::size_t flat, const std::function<void()>& act);  // tells the meter of plans
  WindowParts parts_of(const Flat& flat) const;
  void update_window(const Window& window, std::span<const Tensor> here, double scale, const Numerics& numerics,
                     const Queue& queue) const;
  // `here` holds the window's gradients, values, master copies and moments, in which the piece begins at `piece.at`. Values
  // and master copies can be empty.
  UpdateRange range_of(const Piece& piece, std::span<const Tensor> here, double scale, const Numerics& numerics) const;

  std::unique_ptr<UpdateRule> rule_;
  Allocator& memory_;
  OptimizerTier tier_;
  std::vector<Flat> flat_;          // empty if there are no windows
  std::optional<WindowWalk> walk_;  // the update in progress
  Meter* meter_ = nullptr;          // Queue::meter of this update
  std::uint64_t seed_;
  std::vector<State> states_;
  std::int64_t steps_ = 0;
};

}  // namespace chorale
