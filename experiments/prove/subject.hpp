// The model, the data and the optimizer's rule that a case uses. They determine the values that one rank computes. So all
// cases of a subject are compared with the same run on one rank.
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

// For each subject, the history of its run on one rank.
using References = std::vector<std::pair<Subject, History>>;
const History* reference_of(const Case& row, const References& references);  // null: no such run yet

// The synthetic language, read as the case requires.
ReadSamples reader_of(const Case& row);

}  // namespace chorale::prove
