#include "src/math/optimizer_steps.hpp"

#include <algorithm>
#include <cmath>

#include "src/math/cast.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/optimizer_steps.hpp"

namespace chorale {
namespace {

// Fixed-point gradients have 63 bits, so they are scaled in double and then rounded to float.
template <class Gradient>
float scaled(Gradient gradient, double scale) {
  if constexpr (std::same_as<Gradient, float> || std::same_as<Gradient, bf16>)
    return static_cast<float>(gradient) * static_cast<float>(scale);
  return static_cast<float>(static_cast<double>(gradient) * scale);
}

// The formulas of reference/optimizer_steps.hpp in f32, with every rounding explicit. Slices do not overlap, so ivdep is
// valid.
struct AdamRule {
  static constexpr std::size_t moments = 2;
  AdamStep step;

  template <class Gradient>
  void operator()(float* w, std::array<float*, 2> moment, const Gradient* gradient, double scale, std::int64_t count) const {
    const auto beta1 = static_cast<float>(step.beta1), rest1 = static_cast<float>(1 - step.beta1);
    const auto beta2 = static_cast<float>(step.beta2), rest2 = static_cast<float>(1 - step.beta2);
    const auto correction1 = static_cast<float>(step.correction1), correction2 = static_cast<float>(step.correction2);
    const auto epsilon = static_cast<float>(step.epsilon), rate = static_cast<float>(step.rate);
    const auto decay = static_cast<float>(step.decay);
    const auto [m, v] = moment;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = scaled(gradient[i], scale);
      m[i] = __builtin_fmaf(beta1, m[i], rest1 * g);
      v[i] = __builtin_fmaf(beta2, v[i], rest2 * g * g);
      const float direction = m[i] * correction1 / (std::sqrt(v[i] * correction2) + epsilon);
      w[i] = __builtin_fmaf(-rate, __builtin_fmaf(decay, w[i], direction), w[i]);
    }
  }
  template <class Gradient>
  void operator()(double* w, std::array<double*, 2> moment, const Gradient* gradient, double scale,
                  std::int64_t count) const {
    reference::adamw(step, w, moment[0], moment[1], gradient, scale, count);
  }
};

struct SgdRule {
  static constexpr std::size_t moments = 1;
  SgdStep step;

  template <class Gradient>
  void operator()(float* w, std::array<float*, 2> moment, const Gradient* gradient, double scale, std::int64_t count) const {
    const auto momentum = static_cast<float>(step.momentum), rate = static_cast<float>(step.rate);
    const auto decay = static_cast<float>(step.decay);
    float* const m = moment[0];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = scaled(gradient[i], scale);
      m[i] = __builtin_fmaf(momentum, m[i], __builtin_fmaf(decay, w[i], g));
      w[i] = __builtin_fmaf(-rate, m[i], w[i]);
    }
  }
  template <class Gradient>
  void operator()(double* w, std::array<double*, 2> moment, const Gradient* gradient, double scale,
                  std::int64_t count) const {
    reference::sgd(step, w, moment[0], gradient, scale, count);
  }
};

template <class T>
T* pointer(const Slice& slice) {
  return static_cast<T*>(slice.data);
}

void check(const UpdateRange& range, std::size_t moments) {
  const Slice &weights = range.weights, &gradient = range.gradient, &value = range.value;
  require(weights.dtype == DType::f32 || weights.dtype == DType::f64 || weights.dtype == DType::bf16,
          "an optimizer's weights must be f32, f64 or bf16, not {}", name_of(weights.dtype));
  for (std::size_t m = 0; m < moments; ++m) {
    const Slice& moment = range.moments[m];
    require(moment.dtype == statistic_of(weights.dtype) && moment.count == weights.count && gradient.count == weights.count,
            "{} weights of {} need as many moments and gradients, got {} moments of {} and {} gradients", weights.count,
            name_of(weights.dtype), moment.count, name_of(moment.dtype), gradient.count);
  }
  require(!value.data || (weights.dtype == DType::f32 && size_of(value.dtype) == 2 && value.count == weights.count),
          "{} weights of {} cannot be rounded to {} values of {}", weights.count, name_of(weights.dtype), value.count,
          name_of(value.dtype));
}

bool is_phantom(const UpdateRange& range) { return !range.weights.data || !range.moments[0].data || !range.gradient.data; }

// Returns the bytes that the update of a range reads and writes.
double bytes_of(const UpdateRange& range) {
  std::int64_t bytes = 2 * range.weights.bytes() + range.gradient.bytes() + range.value.bytes();
  for (const Slice& moment : range.moments) bytes += 2 * moment.bytes();
  return static_cast<double>(bytes);
}

double bytes_of(std::span<const UpdateRange> ranges) {
  double bytes = 0;
  for (const UpdateRange& range : ranges) bytes += bytes_of(range);
  return bytes;
}

// Checks all ranges. Returns false if any range is phantom (has no storage), because then there is nothing to do.
bool checked(std::span<const UpdateRange> ranges, std::size_t moments, const Queue& queue) {
  for (const UpdateRange& range : ranges) check(range, moments);
  if (std::ranges::none_of(ranges, is_phantom)) return true;
  for (const UpdateRange& range : ranges) queue.note(Work::update, bytes_of(range));
  return false;
}

constexpr std::int64_t piece = 2048;  // elements per block; a block stays in the L1 cache between update and rounding

void round_by_chance(const float* from, bf16* to, std::int64_t first, std::int64_t count, const UpdateRange& range) {
  std::uint32_t bits[piece];
  const Places& places = range.places;
  for (std::int64_t done = 0; done < count;) {  // processes a sequence of elements that is contiguous in the complete tensor
    const std::int64_t row_left = places.length - (places.first + first + done) % places.length;
    const bool whole_rows = places.length == places.columns;
    const auto here = static_cast<std::size_t>(whole_rows ? count : std::min(count - done, row_left));
    range.random.fill_bits(static_cast<std::uint64_t>(places(first + done)), std::span(bits + done, here));
    done += static_cast<std::int64_t>(here);
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = rounded_by(bits[i] >> 16, from[i]);
}

template <class Gradient, class Rule>
void update_piece(const Rule& rule, const UpdateRange& range, std::int64_t first, std::int64_t count) {
  const auto run = [&]<class T>(T* weights) {
    // SGD has only one moment.
    const auto moment = [&](const Slice& slice) { return slice.data ? pointer<T>(slice) + first : nullptr; };
    rule(weights, std::array{moment(range.moments[0]), moment(range.moments[1])}, pointer<Gradient>(range.gradient) + first,
         range.scale, count);
  };
  if (range.weights.dtype == DType::f64) return run(pointer<double>(range.weights) + first);
  if (range.weights.dtype == DType::bf16) {
    float wide[piece];
    bf16* const narrow = pointer<bf16>(range.weights) + first;
    convert(narrow, wide, count);
    run(wide);
    return round_by_chance(wide, narrow, first, count, range);
  }
  float* const weights = pointer<float>(range.weights) + first;
  run(weights);
  if (range.value.data && range.value.dtype == DType::bf16) convert(weights, pointer<bf16>(range.value) + first, count);
  if (range.value.data && range.value.dtype == DType::f16) convert(weights, pointer<f16>(range.value) + first, count);
}

template <class Rule>
void update(const Rule& rule, std::span<const UpdateRange> ranges, const Queue& queue) {
  for (const UpdateRange& range : ranges) {
    Rule here = rule;
    if (!range.decays) here.step.decay = 0;
    with_summed_gradient_type(range.gradient.dtype, [&]<class G>(Type<G>) {
      parallel_for(queue.threads, range.weights.count, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t at = first; at < last; at += piece) update_piece<G>(here, range, at, std::min(piece, last - at));
      });
    });
  }
}

}  // namespace

void adamw(const AdamStep& step, std::span<const UpdateRange> ranges, const Queue& queue) {
  if (!checked(ranges, AdamRule::moments, queue)) return;
  const Kernel kernel(queue, "AdamW", Kernel::on_bytes(bytes_of(ranges), Work::update), false);
  if (queue.device) return queue.device->adamw(step, ranges, queue);
  update(AdamRule{step}, ranges, queue);
}

void sgd(const SgdStep& step, std::span<const UpdateRange> ranges, const Queue& queue) {
  if (!checked(ranges, SgdRule::moments, queue)) return;
  const Kernel kernel(queue, "SGD", Kernel::on_bytes(bytes_of(ranges), Work::update), false);
  if (queue.device) return queue.device->sgd(step, ranges, queue);
  update(SgdRule{step}, ranges, queue);
}

}  // namespace chorale
