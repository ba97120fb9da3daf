#include "layers/kept_inputs.hpp"

namespace chorale {

void KeptInputs::keep(const Tensor& x) {
  if (writes_.size() == most_writes) {
    writes_.front().wait();
    writes_.pop_front();
  }
  Staged& here = writes_.emplace_back(memory_, x.count(), x.dtype(), Category::activations);
  copy(x.slice(), here.tensor().slice());
  there_.emplace_back(tier_, x.shape(), x.dtype(), Category::activations);
  here.start_write(there_.back(), traffic_);
}

void KeptInputs::finish_writes() {
  for (Staged& write : writes_) write.wait();
  writes_.clear();
}

void KeptInputs::read_ahead() {
  if (read_ || there_.empty()) return;
  finish_writes();  // the write of the newest input can still be in flight
  const Tensor& there = there_.back();
  read_ = Staged(memory_, there.count(), there.dtype(), Category::activations);
  read_.start_read(there, traffic_);
}

// The caller shares ownership of the copy, so deferred weight gradients can still use the input after the next input has
// been read.
Tensor KeptInputs::take() {
  require(!empty(), "the backward pass takes more inputs of blocks than the forward pass kept");
  read_ahead();
  read_.wait();
  const Tensor x = read_.tensor().view(there_.back().shape());
  read_ = {};
  there_.pop_back();
  read_ahead();
  return x;
}

}  // namespace chorale
