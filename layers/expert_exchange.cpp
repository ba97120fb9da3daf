#include "layers/expert_exchange.hpp"

namespace chorale {

const ExpertExchange& ExpertExchange::alone() {
  static const ExpertExchange none;
  return none;
}

}  // namespace chorale
