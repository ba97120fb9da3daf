#include "experiments/launch/launch_record.hpp"

#include "experiments/common/run_record.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::launch {

LaunchRecord::LaunchRecord(const std::filesystem::path& parent, const Session& session,
                           const std::vector<std::string>& hosts)
    : folder_(std::filesystem::absolute(make_run_folder(parent, "launch", session.clock)).lexically_normal()),
      recorder_(folder_, facts_of(session, folder_.filename().string(), hosts), session.clock),
      train_(train::table_of_steps(recorder_)),
      eval_(recorder_.table<train::EvalRow>({.group = "eval", .rows = "step", .live = true})),
      events_(recorder_.table<LaunchEvent>({.group = "events", .rows = "event", .live = true})) {}

void LaunchRecord::describe(const std::string& layout, std::int64_t ranks, std::int64_t steps, const std::string& toml) {
  recorder_.text("/", "layout", layout);
  recorder_.number("jobsize", ranks);
  recorder_.number("train_iters", steps);
  recorder_.text("config", "toml", toml);
  recorder_.flush();
}

void LaunchRecord::step(const train::TrainRow& row) {
  recorder_.append(train_, row);
  if (recorder_.due(row.step)) recorder_.flush();
}

void LaunchRecord::evaluation(const train::EvalRow& row) { recorder_.append(eval_, row); }

void LaunchRecord::event(const LaunchEvent& row) {
  recorder_.append(events_, row);
  recorder_.flush();
}

void LaunchRecord::finish(const std::string& status) { recorder_.finish(status); }

}  // namespace chorale::launch
