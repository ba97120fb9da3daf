// Prices of a machine that does not exist, for tests: within a host, or between hosts on a gigabit network.
#pragma once
#include "collectives/prediction/prices.hpp"

namespace chorale::test {

inline prediction::Prices sample_prices(bool is_network = false) {
  prediction::Prices p{.call = 2e-7, .step = 1e-7, .message = 4e-7, .latency = 3e-7, .handshake = 3e-6, .turn = 8e-7};
  p.touch = {1 / 80e9, 1 / 70e9, 1 / 60e9, 1 / 40e9, 1 / 9e9};
  p.cross = {1 / 30e9, 1 / 28e9, 1 / 25e9, 1 / 20e9, 1 / 7e9};
  p.cross_sum = 1 / 15e9;
  p.sum = 1 / 60e9;
  p.copy = 1 / 12e9;
  p.eager = 1 / 6e9;
  p.eager_bytes = 12288;
  if (!is_network) return p;
  p.latency = p.handshake = 3e-5;
  p.message = 5e-6;
  p.link = 1 / 120e6;
  p.burst = 64e3;
  return p;
}

}  // namespace chorale::test
