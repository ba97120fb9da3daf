// Creates a suite's record for the Python tests of the report. Each finished run has its own group.
#include "src/base/text.hpp"
#include "src/record/recorder.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

TEST_CASE("attach the comma-separated TEST_RECORDS to a record in TEST_FOLDER", "[.suite-record]") {
  SystemClock clock;
  Recorder recorder(needed("TEST_FOLDER"), {{"run_id", "suite"}}, clock);
  std::size_t number = 0;
  for (const std::string& record : split(needed("TEST_RECORDS"), ','))
    recorder.attach("runs/run-" + std::to_string(number++), record);
  recorder.finish("ok");
}

}  // namespace chorale::test
