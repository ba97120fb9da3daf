// Optimizers. An UpdateRule is the formula of an optimizer; it works on flat ranges of elements. The Optimizer keeps the
// state of the parameters that a rank owns and applies the rule to them: to whole parameters, or under ZeRO to ranges of
// parameters.
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

#include "layers/parameter.hpp"
#include "src/tier/windows.hpp"

namespace chorale {

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual std::vector<std::string> moments() const = 0;         // the names of the moments in checkpoints
  virtual void begin_step(std::int64_t step, double rate) = 0;  // steps count from 1
  virtual void update(std::span<const UpdateRange> ranges, const Queue& queue) const = 0;
};

std::unique_ptr<UpdateRule> adamw_rule(double beta1, double beta2, double epsilon, double decay);
std::unique_ptr<UpdateRule> sgd_rule(double momentum, double decay);

// Elements [first, first + count) of a parameter's shard (this rank's part of it), numbered row by row.
struct Owned {
  ParameterPointer parameter;
  std::int64_t first, count;
  Tensor value, gradient;
  // The bucket that contains these elements, and its flat tensors, in which several parameters follow each other. The
  // elements begin at index `at` of the flat tensors. Lists have the pieces of one bucket side by side.
  std::size_t bucket = 0;
  Tensor all_values = {}, all_gradients = {};
  std::int64_t at = 0;
};

// How the optimizer updates if its tensors are in a slow tier, or if the update runs while the program computes. The update
// then proceeds in windows of `elements` elements (src/tier/windows.hpp).
struct OptimizerTier {
  Allocator* compute = nullptr;    // where the update computes; null: in memory
  Allocator* states = nullptr;     // where states live; null: in memory
  TierTraffic* traffic = nullptr;  // null: the whole update at once, and nothing is in a slow tier
  std::int64_t elements = 1 << 20;
  bool keeps_old = false;  // room for the old states and values, so that an update can be rolled back
  bool delays = false;     // values change only in publish(): all weights have master copies
};

class Optimizer {
 public:
  Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Owned>& owned, Allocator& memory, std::uint64_t seed,
            const Queue& queue = {}, bool masters = true, const OptimizerTier& tier = {});

  // scale: a factor for the gradients. The gradients are also multiplied by the unit of their sums (Numerics::unit).
  void step(double rate, double scale, const Numerics& numerics, const Queue& queue);
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  // The same step in parts, if there are windows. Between begin() and finish() the program may compute.
  void begin(double rate, double scale, const Numerics& numerics, const Queue& queue);
  void start(std::size_t bucket);      // starts the update of a bucket (Owned::bucket)
  void start();                        // starts the updates of all buckets
  void progress();                     // updates windows that have arrived; never waits
  void finish(std::size_t bucket);     // waits until nothing needs the bucket's gradients any more
  void finish();                       // starts what has not been started, and waits for all
  void roll_back(const Queue& queue);  // after finish(), with keeps_old: undoes the step

  // All tensors that a checkpoint must hold, by name: the weights ("block.0…"), "moment1/block.0…", …
  // If updates are delayed, also "value/block.0…". Tensors in a slow tier are read from there.
  void each_state(const std::function<void(const std::string&, const Owned&, const Tensor&)>& visit) const;
  void publish(const Queue& queue);  // casts the master copies to the parameters

 private:
  struct State {
    Owned owned;
    Tensor weights;  // the master copy, or the parameter itself
    std::vector<Tensor> moments;
    bool is_master() const { return weights.storage() != owned.value.storage(); }
  };
  // The flat tensors of the states [first, last): several parameters, one after the other.
  struct Flat {
    std::size_t bucket, first, last;
    Tensor values, gradients, weights;  // weights: the master copies, if there are any
    std::vector<Tensor> moments;
    // With keeps_old, an update reads the weights and moments and writes these tensors, and then both sets are swapped.
    // Values without master copies are copied instead, because the layers hold their addresses.
    Tensor other_weights, old_values;
    std::vector<Tensor> other_moments;
    bool started = false;
    void exchange() { std::swap(weights, other_weights), std::swap(moments, other_moments); }
  };
  // The part of a state that lies in a window.
  struct Piece {
    const State& state;
    std::int64_t first, count;  // its range of the state's elements
    std::int64_t at;            // index of the first one in the window
  };
  Flat& flat_of(const Owned& owned, bool has_master, const std::function<Tensor(std::int64_t)>& state);
  std::vector<Piece> pieces_in(const Window& window) const;
  void start_flat(std::size_t flat);
  WindowParts parts_of(const Flat& flat) const;
  void update_window(const Window& window, std::span<const Tensor> here, double scale, const Numerics& numerics,
                     const Queue& queue) const;
  // here: the gradients, values, master copies and moments, from piece.at on. Values and master copies may be empty.
  UpdateRange range_of(const Piece& piece, std::span<const Tensor> here, double scale, const Numerics& numerics) const;

  std::unique_ptr<UpdateRule> rule_;
  Allocator& memory_;
  OptimizerTier tier_;
  std::vector<Flat> flat_;          // only if there are windows
  std::optional<WindowWalk> walk_;  // the update in progress
  std::uint64_t seed_;
  std::vector<State> states_;
  std::int64_t steps_ = 0;
};

}  // namespace chorale
