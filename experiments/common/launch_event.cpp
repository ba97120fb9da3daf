#include "experiments/common/launch_event.hpp"

#include <fmt/format.h>

#include "src/base/text.hpp"

namespace chorale {

bool LaunchEvent::is_interruption() const {
  using enum EventKind;
  return kind == died || kind == hung || kind == host_gone || kind == failed || kind == resized;
}

double LaunchEvent::seconds_to_step() const { return is_interruption() ? end_s + choose_s + first_step_s : first_step_s; }

std::string LaunchEvent::name() const {
  const std::string what = replace_all(name_of(kind), '_', ' ');
  if (kind == EventKind::host_gone && !host.empty()) return what + ": " + host;
  return rank >= 0 ? fmt::format("{}: rank {}", what, rank) : what;
}

std::string LaunchEvent::change() const {
  if (from_layout.empty() || to_layout.empty() || from_layout == to_layout)
    return from_layout.empty() ? to_layout : from_layout;
  return from_layout + " → " + to_layout;
}

}  // namespace chorale
