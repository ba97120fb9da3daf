#include <chorale/clock.hpp>

#include <ctime>

namespace chorale {
namespace {

double read(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

double SystemClock::seconds() const { return read(CLOCK_MONOTONIC); }
double SystemClock::wall_seconds() const { return read(CLOCK_REALTIME); }

void SystemClock::sleep(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  timespec t{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  nanosleep(&t, nullptr);  // a signal can interrupt the sleep; callers poll again
}

std::string iso_time(double wall_seconds) {
  const auto whole = static_cast<std::time_t>(wall_seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace chorale
