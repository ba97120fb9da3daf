// Fits prices to measured times: minimizes the errors ln(predicted/measured) over all rows. The parameters are the
// logarithms of the prices (least_squares.hpp). Prices that the rows do not show stay near those it begins with.
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
  Prices within, between;                                             // between: of several hosts only
  std::map<std::string, std::vector<double>> spread, spread_between;  // relative standard errors, by key of price
  double error = 0, error_95 = 0;  // median and 95th percentile of |ln(predicted/measured)|
};

struct Known {  // prices that need not be fitted
  // With several hosts: all prices of one host. If ranks outnumber cores, the fit only begins with these: waiting ranks then
  // delay each other in another way.
  std::optional<Prices> within;
  double eager_bytes = 0;  // of messages within a host; 0: unknown
};

// `maps_memory`: the rows ran on mapped memory. `tick`: called often; returns false to stop, and then nothing is returned.
std::optional<Fitted> fit(
    const std::vector<Timed>& rows, std::int64_t element_bytes, bool maps_memory, const Site& site,
    const std::function<bool()>& tick = [] { return true; }, const Known& known = {});

}  // namespace chorale::forecast
