// Fits prices to measured times: minimizes the errors ln(predicted/measured) over all rows. The parameters are the
// logarithms of the prices (least_squares.hpp). A price that the rows do not determine stays near its start value.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "collectives/forecast/forecast.hpp"

namespace chorale::forecast {

struct Timed {
  std::vector<Schedule> ranks;
  double seconds = 0;
};

struct Fitted {
  Prices within, between;                                             // between: only if there are several hosts
  std::map<std::string, std::vector<double>> spread, spread_between;  // relative standard errors of the prices with each key
  double error = 0, error_95 = 0;  // median and 95th percentile of |ln(predicted/measured)|
};

struct Known {  // prices that need not be fitted
  // All prices of one host, if there are several hosts. If ranks outnumber cores, these are only the start values of the
  // fit, because waiting ranks then delay each other differently.
  std::optional<Prices> within;
  double eager_bytes = 0;  // for messages within a host; 0: unknown
};

// `maps_memory`: the rows ran on mapped memory. `tick` is called often. If it returns false, the fit stops and returns
// nothing.
std::optional<Fitted> fit(
    const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site,
    const std::function<bool()>& tick = [] { return true; }, const Known& known = {});

}  // namespace chorale::forecast
