// The virtual time of everything that Chorale predicts. The engine knows only times, and activities that share resources.
// Its clients know what happens at a time, or when an activity is over, and say what happens next.
//
//   at(t, id)       ─────────────────▶ t           over(id)      a kernel, a latency, the end of a call
//   begin(activity) ═══ amount / rate ═══▶         over(id)      bytes on links, work on cores
//
// The rates of all activities change whenever one begins or is over. A sharing sets them, for example max_min.hpp.
//
// At one time, activities that were running are over first, then times are reached; both in the order of their ids.
// O(events · activities). Equal inputs give bit-identical results.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace chorale {

inline constexpr double forever = std::numeric_limits<double>::infinity();

struct ResourceUse {
  int resource = 0;
  std::int64_t parts = 1;  // number of equal parts of the activity that use the resource
};

struct Activity {
  int id = 0;
  double left = 0;                     // what a part still has to do: bytes, or seconds on a core
  std::vector<ResourceUse> uses = {};  // for max_min
  double limit = forever;              // greatest rate of a part
  double rate = 0;                     // current rate of a part, which the sharing sets
};

using Sharing = std::function<void(std::vector<Activity>&)>;

class Engine {
 public:
  explicit Engine(Sharing sharing = {}) : sharing_(std::move(sharing)) {}  // without a sharing, there are only times

  double now() const { return now_; }
  void at(double time, int id) { times_.emplace(time, id); }
  void begin(Activity activity);
  // Runs until nothing happens any more. `over` is called with the id of each time that is reached and of each activity that
  // is over. `settle` is called before time passes.
  void run(
      const std::function<void(int id)>& over, const std::function<void()>& settle = [] {});

 private:
  void share();
  double end_of(const Activity& activity) const { return shared_at_ + activity.left / activity.rate; }

  using Time = std::pair<double, int>;
  Sharing sharing_;
  std::priority_queue<Time, std::vector<Time>, std::greater<>> times_;
  std::vector<Activity> activities_;
  bool changed_ = false;                             // whether activities have begun or ended since their rates were set
  double now_ = 0, shared_at_ = 0, next_ = forever;  // when rates were set; when the next activity is over
};

}  // namespace chorale
