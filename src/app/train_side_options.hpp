#pragma once

#include "app/command.hpp"
#include "measure/estimate_options.hpp"
#include "measure/replay_options.hpp"
#include "model_files/generate_options.hpp"
#include "model_files/quantise_options.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "commands.hpp"

// The options of the commands that live in the training library. Also compiled into the program, so
// that --help works without that library: loading LibTorch takes long.
namespace lockstep::app {

struct TrainTold {
    bool force = false;
    bool quiet = false;
    bool verbose = false;
    bool json = false; ///< records on standard output, and no words
};

struct PlanTold {
    std::int64_t ranks = 0; ///< 0: those that were started
    std::int64_t per_host = 0;
};

struct CheckTold {
    bool json = false;
};

struct BenchStepTold {
    std::string model = "mlp18m";
    std::string variant = "engine";
    std::int64_t batch = 64;
    std::int64_t steps = 50;
    bool json = false;
};

struct ExportCheckTold {
    std::string data;
    std::int64_t samples = 256;
    std::filesystem::path checkpoint;
    std::optional<double> tolerance{};
};

struct EvaluateTold {
    std::filesystem::path outputs; ///< empty: none are written
    bool overwrite = false;
    bool force = false; ///< a plug-in may have changed
    std::int64_t worst = 0;
    std::filesystem::path worst_output; ///< a directory; empty: nothing is written
};

struct PredictTold {
    std::filesystem::path output;
    std::int64_t batch = 128;
    bool skip_bad = false; ///< skip samples that cannot be read, and tell them
    bool overwrite = false;
    bool center_crop = false;   ///< pictures are taken as `data import images` takes them
    std::uint64_t shorter = 0;  ///< likewise
    std::string alpha = "drop"; ///< likewise
};

struct ReplayTold {
    measure::ReplayOptions options{};
    bool overwrite = false;
};

struct SearchTold {
    std::filesystem::path directory; ///< empty: runs/NAME of SPACE
};

Options train_options(TrainTold& told);
Options search_options(SearchTold& told);
Options plan_options(PlanTold& told);
Options check_options(CheckTold& told);
Options estimate_options(measure::EstimateOptions& told);
Options evaluate_options(EvaluateTold& told);
Options generate_options(train::GenerateOptions& told);
Options predict_options(PredictTold& told);
Options replay_options(ReplayTold& told);
Options bisect_options(NothingTold&);
Options quantise_options(train::QuantiseOptions& told);
Options bench_step_options(BenchStepTold& told);
Options export_check_options(ExportCheckTold& told);
Options models_options(NothingTold&);
Options tasks_options(NothingTold&);

std::string train_help(HelpWords const&);
std::string plan_help(HelpWords const&);
std::string check_help(HelpWords const&);
std::string estimate_help(HelpWords const&);
std::string evaluate_help(HelpWords const&);
std::string generate_help(HelpWords const&);
std::string predict_help(HelpWords const&);
std::string replay_help(HelpWords const&);
std::string bisect_help(HelpWords const&);
std::string bench_step_help(HelpWords const&);
std::string export_check_help(HelpWords const&);
std::string models_help(HelpWords const&);
std::string tasks_help(HelpWords const&);

} // namespace lockstep::app
