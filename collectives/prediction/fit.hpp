// Fits prices to measured times, by minimizing the errors ln(predicted/measured) over all rows. The parameters of the fit
// are the logarithms of the prices (least_squares.hpp). If the rows do not determine a price, the price stays near its start
// value.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "collectives/prediction/prediction.hpp"

namespace chorale::prediction {

struct Timed {
  std::vector<Schedule> ranks;
  double seconds = 0;
};

struct Fitted {
  Prices within, between;  // `between` is used only if there are several hosts
  // Relative standard errors, keyed by the name of the price.
  std::map<std::string, std::vector<double>> spread, spread_between;
  double error = 0, error_95 = 0;  // median and 95th percentile of |ln(predicted/measured)|
};

struct Known {  // prices that are already known
  // All prices within a host, which are known when a fit covers several hosts. If there are more ranks than cores, these
  // prices are only start values of the fit, because waiting ranks then delay each other in another way.
  std::optional<Prices> within;
  double eager_bytes = 0;  // limit of eager messages within a host, or 0 if unknown
};

// `maps_memory`: the rows were measured on mapped memory. `tick` is called often. If `tick` returns false, the fit stops and
// returns nothing.
std::optional<Fitted> fit(
    const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site,
    const std::function<bool()>& tick = [] { return true; }, const Known& known = {});

}  // namespace chorale::prediction
