// A study as an array of jobs on a cluster with Slurm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/sweep_study.h"

namespace spes::app {

// Writes a job script for the runs of these indices into the study's folder and submits it; the
// array's numbers are the indices. `jobs`: how many may run at once; 0: any number. Returns what
// Slurm calls the job. Throws std::runtime_error with sbatch's own words when it refuses, and when
// the job submitted before is still queued or running.
std::string SubmitToSlurm(const LoadedStudy& loaded, const std::vector<int>& indices, int jobs);

// Tasks of the job submitted last, as the queue has them.
struct SlurmQueue {
  std::string job;
  int pending = 0, running = 0;  // running: or in another state on the way to its end
};

// Nothing when no job was submitted from this folder, or there is no squeue here.
std::optional<SlurmQueue> AskSlurm(const SweepFolder& folder);

}  // namespace spes::app
