// The options of a training run: model, numerics, batch, optimizer. The options have the same names as in Megatron-LM. The
// parts of TrainingOptions (include/chorale/training.hpp) declare these options, and the options set the fields of one
// TrainingOptions. on() computes all values that the user left open.
#pragma once
#include <optional>
#include <string>

#include <chorale/training.hpp>
#include "experiments/train/dataset.hpp"
#include "experiments/train/offload_places.hpp"
#include "experiments/train/shape_options.hpp"
#include "parallel/layout/asked_layout.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class ComputeDevice;

// Facts that a run or a plan knows in addition to its options.
struct Here {
  int threads = 1;                        // threads per rank, if --threads is not given
  std::int64_t memory_limit = 0;          // bytes per rank; 0: no limit
  const ComputeDevice* device = nullptr;  // where kernels run; null: on the host
  bool on_accelerator = false;            // true in a run on a GPU, and in a plan for an accelerator
  bool hosts_known = true;                // false if it is unknown which ranks share a host
};

class Flags {
 public:
  Flags();
  void declare(Options& options);
  void declare_parallel(Options& options, const AskedLayout& layout);
  void declare_offload(Options& options);

  // Returns the complete options of a training run with this layout. Computes all values that are relative, derived or left
  // open. Only replicas.prefetch_units stays open, because this value needs a plan. Throws a usage error if options
  // contradict each other.
  TrainingOptions on(const Layout& layout, const Here& here = {}) const;

  // Returns the limits of legal layouts: the shape, the number of ranks (`world`) and the batch sizes. If no micro-batch
  // size was given, the size stays 0, so that each layout that an error recommends gets its own default.
  LayoutLimits limits(const TrainingOptions& options, std::int64_t world) const {
    return {options.shape, world, options.batch.global, micro_batch_.value_or(0), &all_axes(), options.context};
  }
  // Returns the limits that apply while the layout is still unknown. A global batch size of 0 fits any layout, because it is
  // computed later from the number of replicas.
  LayoutLimits limits(std::int64_t world) const {
    return {shape_.shape(), world, global_batch_.value_or(0), micro_batch_.value_or(0), &all_axes(), asked_.context};
  }
  void take_type(DType dtype) { asked_.compute = dtype; }  // replaces the default type
  std::int64_t steps() const { return steps_; }
  // Returns a warning if the default warm-up of the learning rate takes most of the steps, otherwise "".
  std::string long_warmup(const Options& options) const;
  const DocumentMask& document_mask() const { return document_mask_; }
  const ShapeOptions& shape_options() const { return shape_; }

 private:
  BatchOptions batch_on(const Layout& layout) const;

  TrainingOptions asked_;  // the values that the user gave, except the shape and the batch (shape_, global_batch_, …)
  ShapeOptions shape_;
  DocumentMask document_mask_;
  OffloadPlaces places_;
  std::int64_t steps_ = 100;
  std::optional<std::int64_t> global_batch_ = 8, micro_batch_, accumulation_, threads_;
};

}  // namespace chorale::train
