// The model and the data that a case trains, and the rule by which it learns. They decide the numbers that one rank
// computes, so all cases of a subject are compared with one run on one rank.
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

// For each subject, the history of one rank.
using References = std::vector<std::pair<Subject, History>>;
const History* reference_of(const Case& row, const References& references);  // null: not trained yet

// The synthetic language as a case reads it.
ReadSamples reader_of(const Case& row);

}  // namespace chorale::prove
