// The model, the data and the optimizer's update rule that a case uses. A subject determines the values that a run on one
// rank computes. All cases with the same subject are therefore compared with the same run on one rank.
#pragma once
#include "experiments/prove/cases.hpp"
#include "experiments/prove/history.hpp"

namespace chorale::prove {

struct Subject {
  ModelShape shape;
  train::DocumentMask documents;
  bool few_labels = false, delayed = false;
  double clip = 0;
  explicit Subject(const Case& row)
      : shape(row.options.shape),
        documents(row.documents),
        few_labels(row.few_labels),
        delayed(row.options.update == UpdateTime::delayed),
        clip(row.options.optimizer.clip) {}
  bool operator==(const Subject&) const = default;
};

// The history of the run on one rank, for each subject.
using References = std::vector<std::pair<Subject, History>>;
const History* reference_of(const Case& row, const References& references);  // null if there is no run on one rank yet

// Reads the synthetic language as the case requires.
ReadSamples reader_of(const Case& row);

}  // namespace chorale::prove
