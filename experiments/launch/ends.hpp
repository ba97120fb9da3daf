// Finds out how a start ended. The guards' verdict decides. The exit code of the launcher can be that of any rank, and some
// launchers return 0 although a rank died, so it counts only without a verdict.
#pragma once
#include <optional>
#include <string>

#include "experiments/launch/launch_record.hpp"
#include "experiments/launch/restarts.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/guard/verdict.hpp"

namespace chorale::launch {

// `status`: the last status in the run's metrics.jsonl. `was_asked`: whether the launch asked the ranks to end.
// `was_started`: whether a guard or a record of this start was seen.
EndOfRun end_of_run(const std::optional<Verdict>& verdict, int code, const std::string& status, bool was_asked,
                    bool was_started = true);
EventKind kind_of(const std::optional<Verdict>& verdict, const EndOfRun& end);
std::string in_words(const std::optional<Verdict>& verdict, const EndOfRun& end);

// The host of a guard whose connection closed while its ranks still ran; "" if there is none. A guard says farewell when all
// its ranks have ended, so such a guard has died with its host. If all guards have died, the fault is not one host's.
std::string lost_host(const OtherGuards& guards);

}  // namespace chorale::launch
