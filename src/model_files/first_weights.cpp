#include "model_files/first_weights.hpp"

#include "base/adapter_names.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/safetensors.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/stored_tensor.hpp"
#include "nn/named_code.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr char const* take_common = "set model.weights-match = common, which takes the tensors "
                                    "that fit and lets the others start over from run.seed";

/// Takes all tensors of the model.
CommonWeightsText load_all(nn::Model& model, checkpoint::VerifiedFile const& file,
                           FirstWeightsRule const& rule) {
    auto const path = file.path().string();
    try {
        auto const ignored = load_weights(model, file);
        auto const remark = concat("the initial weights come from ", path);
        return {ignored.empty()
                    ? remark
                    : concat(remark, " (ignored, because the model does not have them: ",
                             joined(ignored, ", "), ")"),
                {}};
    } catch (OtherModel const& other) {
        auto const known = facts_of(file).class_count;
        if (rule.classes > 0 && known > 0 && rule.classes != known) {
            throw Error(ExitCode::data,
                        {concat(path, " does not fit data.train"),
                         concat("its model has ", amount_of(known, "output"),
                                ", one for each class that it was trained on, but data.train has ",
                                rule.classes, rule.classes == 1 ? " class" : " classes"),
                         concat("To learn these classes with a new output layer, ", take_common,
                                ". Otherwise, import the data with all classes of the model "
                                "(--classes), or name the weights of a model with as many "
                                "classes")});
        }
        auto text = other.text();
        text.next += concat(". To keep the model of the deck, ", take_common);
        throw Error(ExitCode::data, text);
    }
}

/// What a file has no values for is not frozen as it was drawn.
void require_trained(nn::Model const& model, CommonWeights const& common, std::string const& path) {
    auto const named = model.named_parameters();
    for (auto const& fresh : common.fresh) {
        auto const* const parameter = named.find(fresh.name);
        if (parameter == nullptr || parameter->requires_grad()) {
            continue;
        }
        throw Error(
            ExitCode::usage,
            {concat(fresh.name, " ", nn::sizes_text(parameter->sizes()), " would stay random"),
             concat("it starts over from run.seed, because ", path,
                    fresh.in_file.empty() ? std::string(" does not have it")
                                          : concat(" has ", fresh.in_file),
                    ", and it is not trained (optimizer.freeze, model.lora-rank)"),
             concat("Choose a model of the shapes in the file (such as model.stem of resnet), or "
                    "train it: optimizer.freeze = ..., !",
                    fresh.name, ", or model.lora-train = ..., ", fresh.name)});
    }
}

/// Takes the tensors of the model that the file has.
CommonWeightsText load_common(nn::Model& model, checkpoint::VerifiedFile const& file) {
    auto const common = load_common_weights(model, file);
    auto const path = file.path().string();
    if (common.parameters == 0) {
        throw Error(
            ExitCode::data,
            {concat(path, " has nothing in common with the deck's model"),
             concat("no parameter of the model, such as ", model.named_parameters().front().key(),
                    ", is in the file with the same name and shape",
                    common.left_over.empty() ? ""
                                             : concat("; the file has ", common.left_over.front())),
             "Name another file, or another model"});
    }
    require_trained(model, common, path);
    return text_of(common, model, path);
}

std::string list_of(std::vector<double> const& values) {
    std::vector<std::string> texts;
    for (auto const value : values) {
        texts.push_back(significant(value, 3));
    }
    return joined(texts, ", ");
}

} // namespace

std::string normalisation_remark(checkpoint::VerifiedFile const& file, data::Facts const& train) {
    bool const pictures =
        train.inputs.size() == 1 && train.inputs[0].type == h5::Type::u8 && train.mean.size() == 3;
    if (!pictures || !facts_of(file).mean.empty()) {
        return {};
    }
    return concat("model.weights does not say how its samples were normalized; those of data.train "
                  "are with mean ",
                  list_of(train.mean), " and std ", list_of(train.std),
                  " (weights of torchvision and timm mostly expect 0.485, 0.456, 0.406 and 0.229, "
                  "0.224, 0.225: lockstep data import images --mean --std)");
}

std::uint64_t hash_of_tensors(nn::Model const& model) {
    Hasher hash;
    auto const add = [&](torch::Tensor const& tensor) {
        auto const values = tensor.detach().cpu().contiguous();
        hash.add({static_cast<std::byte const*>(values.const_data_ptr()), values.nbytes()});
    };
    for (auto const& item : model.named_parameters()) {
        add(item.value());
    }
    for (auto const& item : model.named_buffers()) {
        add(item.value());
    }
    return hash.digest();
}

std::uint64_t teacher_hash(std::uint64_t tensors, nn::Model const& model,
                           config::Model const& own) {
    auto text = concat(tensors, " ", model.fingerprint());
    config::Deck alone;
    alone.model = own;
    for (auto const& [key, hash] : nn::code_hashes(alone)) {
        text += concat(" ", key, " ", hash);
    }
    return hash64(text);
}

std::optional<Origin> origin_of(std::optional<checkpoint::Found> const& found,
                                std::optional<checkpoint::VerifiedFile> const& first_weights,
                                config::Model const& model, bool force) {
    if (found) {
        auto const reader = checkpoint::reader_of(*found);
        return Origin{facts_of(reader->record(), reader->path()), data_of(reader->path())};
    }
    if (first_weights) {
        return Origin{facts_of(*first_weights), data_of(first_weights->path()),
                      data::Use::trained_further, force};
    }
    if (auto const file = model.own.find("file"); file != model.own.end()) {
        if (auto facts = facts_of_program(model.name, file->second)) {
            return Origin{std::move(*facts), data_of(file->second), data::Use::trained_further,
                          force};
        }
    }
    return std::nullopt;
}

checkpoint::VerifiedFile open_first_weights(comm::Communicator const& world,
                                            std::filesystem::path const& given) {
    std::filesystem::path path;
    comm::agree(world, "finding model.weights", [&] { path = checkpoint::safetensors_of(given); });
    return checkpoint::verify_together(world, path);
}

CommonWeightsText load_first_weights(comm::Communicator const& world, nn::Model& model,
                                     checkpoint::VerifiedFile const& file,
                                     FirstWeightsRule const& rule) {
    auto const& path = file.path();
    CommonWeightsText told;
    std::uint64_t own = 0;
    comm::agree(world, "reading model.weights", [&] {
        told = rule.match == "common" ? load_common(model, file) : load_all(model, file, rule);
        require_finite_weights(model, path);
        own = hash_of_tensors(model);
    });
    auto const parameters = model.named_parameters();
    if (std::ranges::any_of(parameters,
                            [](auto const& item) { return is_of_adapter(item.key()); })) {
        told.remark += "; the adapters are new";
    }
    auto const roots = comm::all_gather(world, own).front();
    comm::agree(world, "comparing model.weights", [&] {
        if (own != roots) {
            throw Error(ExitCode::no_input,
                        {concat("model.weights = ", path.string()),
                         "this rank's file holds different weights than rank 0's",
                         "Put the same file on all hosts, or on a file system that they share"});
        }
    });
    return told;
}

} // namespace lockstep::train
