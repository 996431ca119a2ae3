#include "base/file.hpp"
#include "base/number.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "deploy/c_writer.hpp"
#include "deploy/memory_plan.hpp"
#include "deploy/onnx_writer.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/saved_model.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <iostream>
#include <list>
#include <span>
#include <utility>

#include "check_export.hpp"
#include "commands.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

namespace {

/// C compilers take long for weights that stand in a text.
constexpr std::int64_t max_compiled_parameters = 1000000;

/// JSON of ASCII letters, whatever the texts are.
std::string ascii_text(nlohmann::json const& json) {
    return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

deploy::Graph graph_of(train::SavedModel const& saved, std::string const& checkpoint) {
    auto graph = lower::export_graph(*saved.model, saved.inputs,
                                     {saved.facts.target_mean, saved.facts.target_std});
    deploy::simplify(graph);
    graph.class_names = saved.class_names;
    if (!saved.class_names.empty()) {
        graph.facts["classes"] = ascii_text(saved.class_names);
    }
    graph.facts["lockstep"] =
        ascii_text({{"checkpoint", checkpoint}, {"rows", saved.inputs.front().rows}});
    return graph;
}

void write_c(deploy::Graph const& graph, std::filesystem::path const& out) {
    auto const written = deploy::c_source(graph, out.stem().string());
    // The source gets its name last: where it is, the others are.
    std::array const files{std::pair(".h", &written.header), std::pair(".f90", &written.fortran),
                           std::pair(".c", &written.source)};
    std::list<PartialFile> partials;
    for (auto const& [extension, text] : files) {
        auto const name = std::filesystem::path(out).replace_extension(extension);
        auto const file = File::create_new(partials.emplace_back(partial_path(name)).path());
        file.write_at(0, std::as_bytes(std::span(*text)));
        file.sync();
    }
    auto partial = partials.begin();
    for (auto const& [extension, text] : files) {
        (partial++)->rename(std::filesystem::path(out).replace_extension(extension));
    }
}

/// Not measured where nothing here runs such files; the export is good all the same.
std::string latency_text(std::filesystem::path const& out,
                         std::vector<lower::ExportInput> const& inputs, std::int64_t parameters) {
    if (out.extension() == ".c" && parameters > max_compiled_parameters) {
        return "not measured: this many weights would take long to compile";
    }
    try {
        return concat(fixed(export_latency(out, inputs) * 1e3, 3), " ms");
    } catch (Error const& error) {
        return concat("not measured: ", error.text().why);
    }
}

void print_costs(std::filesystem::path const& out, deploy::Graph const& graph,
                 std::vector<lower::ExportInput> const& inputs) {
    auto const costs = deploy::costs_of(graph);
    std::cout << "  file size              " << bytes_text(std::filesystem::file_size(out))
              << "\n  parameters             " << count_text(costs.parameters)
              << "\n  multiply-adds          " << count_text(costs.multiplications)
              << "\n  memory between layers  " << bytes_text(costs.peak_bytes)
              << "\n  latency on one core    " << latency_text(out, inputs, costs.parameters)
              << "\n";
}

} // namespace

/// Words of `lockstep checkpoint export`, which it has looked at: FILE, OUT, format, rows (0: not
/// said) and keys of the deck.
ExitCode export_graph_command(Invocation const& invocation) {
    checkpoint::VerifiedFile const file(invocation.arguments.at(0));
    auto words = invocation.arguments;
    std::filesystem::path const out = words.at(1);
    auto const deck = saved_deck(file, words, out);
    auto const rows = number_of<std::int64_t>(words.at(3)).value_or(0);
    auto const saved = train::open_saved_model(deck, file, rows);
    tell(saved.remarks);
    auto const graph = graph_of(saved, file.path().string());
    if (words.at(2) == "c") {
        write_c(graph, out);
    } else {
        write_text_durably(out, deploy::onnx_file(graph));
    }
    std::cout << out.string() << ": the model of " << file.path().string() << ", for one sample:\n";
    print_costs(out, graph, saved.inputs);
    return ExitCode::ok;
}

} // namespace lockstep::app
