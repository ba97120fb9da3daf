// Connections between the guards of a run on several hosts. The guard of rank 0 listens; all others connect to it.
//
//   n0   guard ── listens: "10.77.1.1 40123 5f2c…" ──▶ rank 0 ── MPI ──▶ the first rank of each other host ──▶ its guard
//   n1   guard ── "5f2c…" ──▶ n0
//
// They exchange lines of JSON (guard_words.hpp). Twice a second each says what its ranks do, so silence means that a host or
// a link is gone. A connection must begin with the secret of the invitation; otherwise it is closed.
#pragma once
#include <poll.h>

#include <list>
#include <string>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/base/guard/guard_words.hpp"

namespace chorale {

class OtherGuards {
 public:
  struct Guard {
    Descriptor line;
    GuardWords words;             // its newest message of each kind
    std::string out, in;          // not yet sent; not yet complete
    double came = 0, silent = 0;  // when it connected; for how long it has been silent
    bool trusted = false, ended = false;
  };
  struct Message {
    Guard* from;
    GuardWords words;
  };

  explicit OtherGuards(Clock& clock) : clock_(clock) {}
  // Returns the invitation: addresses of this host, port, secret. "" if this host cannot listen.
  std::string invite();
  void join(const std::string& invitation);

  bool any() const { return !guards_.empty(); }
  const std::list<Guard>& guards() const { return guards_; }
  void add_to(std::vector<pollfd>& files) const;
  void say(Guard& guard, const GuardWords& words) { guard.out += to_text(words) + "\n"; }
  void say(const GuardWords& words);  // to all
  void wait(double seconds);          // counted as silence of every guard that is not heard
  bool has_said_all() const;
  std::vector<Message> move();  // sends and receives as much as it can without waiting

 private:
  void take_in();
  void receive(Guard& guard, std::vector<Message>& messages);
  void read(Guard& guard, const std::string& line, std::vector<Message>& messages);

  Clock& clock_;
  Descriptor listening_;
  std::string secret_;
  std::list<Guard> guards_;
};

}  // namespace chorale
