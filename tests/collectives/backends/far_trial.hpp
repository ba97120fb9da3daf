// A Trial, the buffers of one call with their expected results (expectation.hpp), on a device. The input is filled on the
// host and copied to the device. The function trouble() copies the result back and checks it.
#pragma once
#include "tests/collectives/expectation.hpp"

namespace chorale::test {

class FarTrial {
 public:
  FarTrial(const Problem& problem, DType dtype, Redop op, Allocator& device)
      : problem_(problem), device_(device.memory()), near_(problem, dtype, op, heap()) {
    const Slice in = near_.input(), out = near_.output();
    const std::int64_t width = size_of(dtype);
    const std::int64_t whole = std::max(problem.blocks.total(), problem.output_count()) * width;
    in_ = device.allocate(problem.in_place ? whole : in.bytes(), Category::workspace);
    if (!problem.in_place) out_ = device.allocate(out.bytes(), Category::workspace);
    input_ = on_device(in_, in, problem.input_home());
    output_ = on_device(problem.in_place ? in_ : out_, out, problem.output_home());
    device_.copy_in(input_.data, in.data, in.bytes());
  }

  Call call() const {
    Call call = near_.call();
    call.input = problem_.what == Collective::broadcast ? output_ : input_;
    call.output = output_;
    return call;
  }
  const Slice& output() const { return output_; }

  std::string trouble() const {
    device_.copy_out(near_.output().data, output_.data, output_.bytes());
    return near_.trouble();
  }

 private:
  Allocator& heap() { return heap_; }
  Slice on_device(const Buffer& buffer, const Slice& like, std::int64_t home) const {
    auto* start = static_cast<std::byte*>(buffer.data()) + (problem_.in_place ? home * size_of(like.dtype) : 0);
    return {start, like.count, like.dtype, device_.device()};
  }

  Problem problem_;
  Memory& device_;
  HostMemory memory_;
  Ledger ledger_;
  Allocator heap_{memory_, ledger_};
  Trial near_;
  Buffer in_, out_;
  Slice input_, output_;
};

}  // namespace chorale::test
