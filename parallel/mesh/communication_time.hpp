// The time during which a rank communicates, over all axes. If several calls are in flight at the same time, that time is
// counted only once.
//
//   call a     ├──────────────┤
//   call b          ├──────────────┤
//   waits               ├ a ──┤├ b ┤
//   hidden     ├────────┤                  a call is in flight while the rank computes
//   exposed             ├──────────┤       the rank waits
#pragma once

namespace chorale {

class CommunicationTime {
 public:
  struct Seconds {
    double exposed = 0, hidden = 0;
  };

  void call_begins(double now) {
    pass(now);
    ++under_way_;
  }
  void call_ends(double now) {
    pass(now);
    --under_way_;
  }
  void wait_begins(double now) {
    pass(now);
    waits_ = true;
  }
  void wait_ends(double now) {
    pass(now);
    waits_ = false;
  }
  Seconds until(double now) {
    pass(now);
    return seconds_;
  }

 private:
  void pass(double now) {
    if (waits_)
      seconds_.exposed += now - since_;
    else if (under_way_ > 0)
      seconds_.hidden += now - since_;
    since_ = now;
  }

  Seconds seconds_;
  double since_ = 0;
  int under_way_ = 0;
  bool waits_ = false;
};

}  // namespace chorale
