#include "device/on_batch.hpp"

#include "base/text.hpp"
#include "nn/to_device.hpp"

namespace lockstep::train {

namespace {

void describe(std::vector<std::string>& texts, char const* what, nn::Fields const& fields) {
    for (std::size_t at = 0; at < fields.size(); ++at) {
        auto const number = fields.size() > 1 ? concat(" ", at + 1) : std::string();
        texts.push_back(concat(what, number, " ", nn::sizes_text(fields[at].values.sizes()), " of ",
                               c10::toString(fields[at].values.scalar_type())));
    }
}

} // namespace

void rethrow_of_batch(task::Tensors const& batch) {
    auto const error = current_error();
    try {
        throw;
    } catch (Error const&) {
        throw;
    } catch (std::exception const& of_torch) {
        if (error.code() != ExitCode::software && error.code() != ExitCode::usage) {
            throw; // memory, or a device that failed
        }
        auto const why = first_line(of_torch.what());
        if (auto const mixed = nn::mixed_devices(why)) {
            throw *mixed;
        }
        std::vector<std::string> texts;
        describe(texts, "inputs", batch.inputs);
        describe(texts, "targets", batch.targets);
        throw Error(
            ExitCode::usage,
            {"a batch does not fit the model and the loss",
             concat(why, "; the batch has ", joined(texts, ", ")),
             "Check that model.name, the model's keys, task.kind and precision fit the shapes "
             "and types of the data (commands: lockstep data info, lockstep models)"});
    }
}

} // namespace lockstep::train
