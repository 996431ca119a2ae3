#include "nn/shapes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <map>

namespace lockstep::nn {

namespace {

std::vector<std::pair<std::string, torch::Tensor>> tensors_of(Model const& model) {
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (auto const& item : model.named_parameters()) {
        tensors.emplace_back(item.key(), item.value());
    }
    for (auto const& item : model.named_buffers()) {
        tensors.emplace_back(item.key(), item.value());
    }
    return tensors;
}

[[noreturn]] void throw_other_model(std::string const& why) {
    throw Error(
        ExitCode::data,
        {"the shapes in the model file do not fit the deck's model", why,
         "Name a model file that fits the deck, or name the deck that this file was trained with"});
}

} // namespace

std::string shapes_text(Model const& model) {
    std::string text;
    for (auto const& [name, tensor] : tensors_of(model)) {
        text += name;
        for (auto const extent : tensor.sizes()) {
            text += concat(" ", extent);
        }
        text += '\n';
    }
    return text;
}

void narrow(Model& model, std::string const& text) {
    torch::NoGradGuard const no_grad;
    std::map<std::string, std::vector<std::string>> shapes;
    for (auto const& line : split(text, '\n')) {
        if (!line.empty()) {
            auto words = split(line, ' ');
            auto const name = words.front();
            words.erase(words.begin());
            shapes[name] = std::move(words);
        }
    }
    for (auto const& [name, tensor] : tensors_of(model)) {
        auto const found = shapes.find(name);
        if (found == shapes.end() ||
            static_cast<std::int64_t>(found->second.size()) != tensor.dim()) {
            throw_other_model(concat("the file has no tensor ", name, " with ",
                                     amount_of(tensor.dim(), "dimension")));
        }
        auto part = tensor.detach();
        for (std::int64_t d = 0; d < tensor.dim(); ++d) {
            auto const extent = number_of<std::int64_t>(found->second[static_cast<std::size_t>(d)]);
            if (!extent || *extent < 1 || *extent > tensor.size(d)) {
                throw_other_model(concat("tensor ", name, " has the shape [",
                                         joined(found->second, ", "),
                                         "] in the file, which does not fit in the model's ",
                                         sizes_text(tensor.sizes())));
            }
            part = part.narrow(d, 0, *extent);
        }
        if (part.numel() != tensor.numel()) {
            torch::Tensor(tensor).set_data(part.clone());
        }
    }
}

} // namespace lockstep::nn
