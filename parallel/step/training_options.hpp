// The options of a training run. Every part is a struct that declares its own options. Each line of its declare() binds an
// option to a field (src/base/options.hpp). A value that the user leaves open is an empty optional.
//
//   part        declared by                     what it configures
//   shape       layers/shape_options.cpp        the model
//   optimizer   layers/optimizer_options.cpp    the update rule, its learning rate and clipping
//   scaler      layers/optimizer_options.cpp    the loss scale of f16
//   replicas    training_options.cpp            the communication between replicas
//   exchange    parallel/experts/experts.cpp    how rows are sent to experts and back
//   context     parallel/context/schemes.cpp    how ranks divide the tokens of a sequence
//   memory      training_options.cpp            how a rank uses its memory
//   offload     offload.cpp                     which tensors live in a file or on the host
#pragma once
#include <cstdint>
#include <optional>

#include "layers/gpt.hpp"
#include "layers/loss_scaler.hpp"
#include "layers/optimizer_options.hpp"
#include "layers/shape.hpp"
#include "parallel/experts/experts.hpp"
#include "parallel/layout/context_scheme.hpp"
#include "parallel/step/offload.hpp"
#include "parallel/step/reducer.hpp"
#include "parallel/step/stage.hpp"
#include "parallel/step/updates.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/numerics.hpp"

namespace chorale {

class AskedLayout;  // parallel/layout/asked_layout.hpp
class Options;

struct BatchOptions {
  std::int64_t global = 8, micro = 8;  // sequences per step, and per micro-batch of a replica
  bool packed = false;                 // a sample may hold several documents (src/data/documents.hpp)
};

struct ReplicaOptions {
  ReducerKind reducer = ReducerKind::bucketed;
  std::optional<std::int64_t> bucket_bytes;  // gradient bytes per bucket; empty: the default in bucket()
  // The type in which ranks sum gradients and keep gradient shards: f32 or bf16. Before these sums, each rank adds up its
  // own gradients in Numerics::gradient_type. Empty: the same type as Numerics::gradient_type.
  std::optional<DType> gradient_sums;
  std::optional<std::int64_t> prefetch_units;  // under ZeRO-3, number of units gathered in advance; empty: 1
  std::int64_t bucket() const { return bucket_bytes.value_or(25 << 20); }
  void declare(Options& options, const AskedLayout& layout);
};

struct MemoryOptions {
  std::int64_t limit = 0;              // bytes on this rank; 0: no limit
  bool contiguous = false;             // places a step's activations and gradients in one block of memory
  bool partition_activations = false;  // tensor ranks divide the activations that full recomputation keeps
  void declare(Options& options, const AskedLayout& layout);
};

// Where and how kernels run.
struct KernelOptions {
  int threads = 1;
  const DevicePlugin* device = nullptr;  // the GPU; null: computes on the host
  std::int64_t workspace_bytes = 0;      // bytes for matrix products on the device, in addition to all tensors
  Meter* meter = nullptr;                // in a plan, records the work of each kernel
  KernelTimer* timer = nullptr;          // records when kernels run; null: a run uses the step account's trace
  Queue queue() const;
};

struct TrainingOptions {
  ModelShape shape;
  DType compute = DType::f32;
  NumericsKind numerics = NumericsKind::fast;
  Recompute recompute = Recompute::none;
  std::uint64_t seed = 1234;
  BatchOptions batch;
  OptimizerOptions optimizer;
  LossScaler scaler;
  ReplicaOptions replicas;
  ExchangeOptions exchange;
  ContextOptions context;
  MemoryOptions memory;
  OffloadOptions offload;
  UpdateTime update = UpdateTime::after;
  KernelOptions kernels;
  BuildModel build = {};  // builds the model; empty: build_gpt

  void declare_numbers(Options& options);                              // compute, numerics, recompute
  void declare_parallel(Options& options, const AskedLayout& layout);  // replicas, exchange, context and memory
};

}  // namespace chorale
