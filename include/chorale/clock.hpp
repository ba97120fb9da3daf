// All code reads the time through a Clock, so that tests and simulators can run on virtual time.
#pragma once
#include <string>

namespace chorale {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() const = 0;       // monotonic, from an arbitrary origin
  virtual double wall_seconds() const = 0;  // seconds since 1970 (Unix time), for records
  virtual void sleep(double seconds) = 0;
};

class SystemClock : public Clock {
 public:
  double seconds() const override;
  double wall_seconds() const override;
  void sleep(double seconds) override;
};

// A clock that advances only in sleep().
class VirtualClock : public Clock {
 public:
  double seconds() const override { return now_; }
  double wall_seconds() const override { return now_; }
  void sleep(double seconds) override { now_ += seconds; }

 private:
  double now_ = 0;
};

std::string iso_time(double wall_seconds);  // 2026-11-21T03:41:37Z

}  // namespace chorale
