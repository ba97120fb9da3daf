// The options of a training run. Every part is a struct that declares its own options. Each line of the struct's declare()
// binds an option to a field (src/base/options.hpp). A field of type std::optional is empty if the user does not set the
// option.
//
//   part        declared by                     what it configures
//   shape       layers/shape_options.cpp        the model
//   optimizer   layers/optimizer_options.cpp    the update rule, its learning rate and clipping
//   scaler      layers/optimizer_options.cpp    the loss scale of f16
//   replicas    training_options.cpp            the communication between replicas
//   exchange    parallel/experts/experts.cpp    how rows are sent to experts and back
//   context     parallel/context/schemes.cpp    how ranks divide the tokens of a sequence
//   memory      training_options.cpp            how a rank uses its memory
//   offload     offload.cpp                     which tensors are stored in a file or on the host
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <chorale/element.hpp>
#include <chorale/model.hpp>
#include <chorale/optimizer.hpp>

namespace chorale {

// The classes below are internal to the library. The `declare` functions below are used only by the library's own command
// line.
class AskedLayout;
class DevicePlugin;
class KernelTimer;
class Mesh;
class Meter;
class Options;
struct ContextScheme;
struct CutRow;
struct Model;
struct Queue;

struct BatchOptions {
  std::int64_t global = 8, micro = 8;  // sequences per step, and per micro-batch of a replica
  bool packed = false;                 // a sample can hold several documents (src/data/documents.hpp)
};

// bucketed: sums gradients during the backward pass. naive: sums gradients after the backward pass; does not work with ZeRO.
enum class ReducerKind : std::uint8_t { naive, bucketed };
constexpr auto names_of(ReducerKind) { return Names{"reducer", "naive", "bucketed"}; }

struct ReplicaOptions {
  ReducerKind reducer = ReducerKind::bucketed;
  std::optional<std::int64_t> bucket_bytes;  // gradient bytes per bucket; if empty, the default in bucket()
  // The type in which ranks sum gradients and keep gradient shards: f32 or bf16. Before these sums, each rank adds up its
  // own gradients in Numerics::gradient_type. Empty: the same type as Numerics::gradient_type.
  std::optional<DType> gradient_sums;
  std::optional<std::int64_t> prefetch_units;  // under ZeRO-3: number of prefetched units, 1 if empty
  std::int64_t bucket() const { return bucket_bytes.value_or(25 << 20); }
  void declare(Options& options, const AskedLayout& layout);
};

// plain: a token is sent once for each of its experts. by_host: a token is sent at most once to each other host, even if
// several of its experts are on that host.
enum class Dispatch : std::uint8_t { plain, by_host };
constexpr auto names_of(Dispatch) { return Names{"dispatch", "plain", "by-host"}; }
// overlapped: while rows return from the experts, the layer computes. blocking: the layer waits for the rows; for comparison
// only.
enum class Combine : std::uint8_t { overlapped, blocking };
constexpr auto names_of(Combine) { return Names{"combine", "overlapped", "blocking"}; }

struct ExchangeOptions {
  Dispatch dispatch = Dispatch::plain;
  Combine combine = Combine::overlapped;
  void declare(Options& options);
};

// context_scheme_named returns the context-parallel scheme with this name. token_cut_named returns the partition of tokens
// among ranks with this name. Both functions throw a usage error for an unknown name.
const ContextScheme& context_scheme_named(const std::string& name);
const CutRow& token_cut_named(const std::string& name);

struct ContextOptions {
  const ContextScheme* scheme = &context_scheme_named("gather");
  const CutRow* cut = nullptr;  // null means auto: zigzag if the sequence has enough blocks, else contiguous
  std::int64_t inner = 0;       // for ulysses-ring: number of ranks per Ulysses group; if 0, each host's ranks form a group
  void declare(Options& options);
};

struct MemoryOptions {
  std::int64_t limit = 0;              // bytes on this rank; 0 means no limit
  bool contiguous = false;             // stores a step's activations and gradients in one contiguous block of memory
  bool partition_activations = false;  // tensor-parallel ranks partition the activations that full recomputation keeps
  void declare(Options& options, const AskedLayout& layout);
};

struct OffloadOptions {
  bool parameters = false, gradients = false, optimizer = false;  // whether these tensors are in the offload tier
  std::string folder = ".";                                       // folder of the file
  std::int64_t window_bytes = 4 << 20;  // bytes of each tensor that an update keeps in memory at a time
  // If true, the offload tier is host memory, for a GPU; otherwise it is a file.
  bool to_host = false;
  bool activations = false;  // whether the activations that full recomputation keeps are in the offload tier
  // Declares all options except `--place` (experiments/train/offload_places.hpp), which selects the offloaded tensors.
  void declare(Options& options, const std::function<std::string()>& nothing_in_file);
  bool any() const { return parameters || gradients || optimizer || activations; }
  std::int64_t window_elements() const;  // number of four-byte elements in a window, rounded down to whole pages
};

// When the optimizer updates the weights (parallel/step/updates.hpp).
enum class UpdateTime : std::uint8_t { after, overlapped, speculative, delayed };
constexpr auto names_of(UpdateTime) { return Names{"time of updates", "after", "overlapped", "speculative", "delayed"}; }

// Where and how kernels run. The library sets the pointers.
struct KernelOptions {
  int threads = 1;
  const DevicePlugin* device = nullptr;  // the GPU; null to compute on the host
  std::int64_t workspace_bytes = 0;      // bytes for matrix products on the device, in addition to all tensors
  Meter* meter = nullptr;                // in a plan, records the work of each kernel
  KernelTimer* timer = nullptr;          // records when kernels run; if null, the training step sets its own timer
  Queue queue() const;
};

// Builds all layers of the model; a rank then keeps only the layers of its stage. If a BuildModel is empty, build_gpt builds
// the model. build_gpt partitions widths among tensor-parallel ranks, and experts among expert-parallel ranks.
using BuildModel = std::function<Model(const ModelShape&, Recompute, const Mesh&)>;

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
  BuildModel build = {};  // builds the model; if empty, build_gpt does

  void declare_numbers(Options& options);                              // compute, numerics, recompute
  void declare_parallel(Options& options, const AskedLayout& layout);  // replicas, exchange, context and memory
};

}  // namespace chorale
