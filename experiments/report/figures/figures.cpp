#include "experiments/report/figures/figures.hpp"

namespace chorale::report {

// Each is in the file of its name.
MakeFigure layouts, sweep, loss, events, course, step_time, prediction, cost, pipeline, scaling, memory, traffic, experts,
    winners, bandwidth, pairs;

const std::vector<FigureRow>& all_figures() {
  static const std::vector<FigureRow> rows{
      {"layouts", "Speed, memory, traffic and loss", "training steps", layouts},
      {"sweep", "Held-out loss by setting", "training runs that differ in one setting that changes what they learn", sweep},
      {"loss", "Loss", "training steps", loss},
      {"events", "Starts, deaths and changes of layout", "a run that a launch has started again", events},
      {"course", "The course of training", "training steps that a machine took", course},
      {"step-time", "Where the time of a step goes", "the times of the phases of a step", step_time},
      {"prediction", "The time of a step, predicted and measured", "a prediction by the machine file", prediction},
      {"cost", "What a simulated step is spent on", "a run in virtual time", cost},
      {"pipeline", "The pipeline, measured and ideal", "a training run with several pipeline stages", pipeline},
      {"scaling", "Speed on more ranks", "runs on different numbers of ranks", scaling},
      {"memory", "Memory per rank", "the bytes that ranks held, by category", memory},
      {"traffic", "Bytes sent along each axis of the mesh", "the bytes that ranks sent, by axis of the mesh", traffic},
      {"experts", "How evenly experts are chosen", "a training run of a model with experts", experts},
      {"winners", "The fastest series by operation and size", "a bench record with several series of one operation",
       winners},
      {"bandwidth", "Latency and bandwidth of the collectives", "a bench record", bandwidth},
      {"pairs", "Bytes between each pair of ranks", "a bench record with counted bytes that a known schedule explains",
       pairs},
  };
  return rows;
}

}  // namespace chorale::report
