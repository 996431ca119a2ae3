#include "lockstep/nn/registry.hpp"
#include "nn/models/names_elsewhere.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// The first name that a parameter has elsewhere and that is one of these.
std::string name_among(std::set<std::string> const& theirs, std::string const& parameter) {
    for (auto const& source : nn::names_elsewhere(parameter)) {
        if (theirs.contains(source.name)) {
            return source.name;
        }
    }
    return "";
}

} // namespace

// The tensors of ViTForImageClassification with one layer, in release 4 of transformers.
TEST_CASE("each parameter of a vision transformer has a name elsewhere, and no other has it") {
    std::set<std::string> theirs{"vit.embeddings.cls_token",
                                 "vit.embeddings.position_embeddings",
                                 "vit.embeddings.patch_embeddings.projection.weight",
                                 "vit.embeddings.patch_embeddings.projection.bias",
                                 "vit.layernorm.weight",
                                 "vit.layernorm.bias",
                                 "classifier.weight",
                                 "classifier.bias"};
    for (auto const* const layer :
         {"attention.attention.query", "attention.attention.key", "attention.attention.value",
          "attention.output.dense", "intermediate.dense", "output.dense", "layernorm_before",
          "layernorm_after"}) {
        for (auto const* const kind : {".weight", ".bias"}) {
            theirs.insert(std::string("vit.encoder.layer.0.") + layer + kind);
        }
    }
    auto const model =
        nn::make_model({"vit", {{"layers", "1"}, {"width", "16"}, {"heads", "2"}}}, {{8, 8}, 3}, 0);
    std::set<std::string> found;
    for (auto const& item : model->named_parameters()) {
        CAPTURE(item.key());
        CHECK(found.insert(name_among(theirs, item.key())).second);
    }
    CHECK(found == theirs);
}

namespace {

/// The names that all tensors of a model have in a package, of each part of one that is joined.
std::map<std::string, int> names_in(nn::Package package, std::string const& kind,
                                    nn::Model const& model) {
    std::map<std::string, int> parts;
    auto const add = [&](std::string const& tensor) {
        auto const found = nn::name_in(package, kind, tensor);
        CAPTURE(tensor);
        REQUIRE(found);
        CHECK((parts[found->name] & (1 << found->part)) == 0); // no other tensor has it
        parts[found->name] |= 1 << found->part;
        // What is written under this name is read again.
        auto const sources = model.other_names(tensor);
        CHECK(std::ranges::any_of(sources, [&](nn::WeightSource const& source) {
            return source.name == found->name && source.part == found->part &&
                   source.parts == found->parts && !source.transposed && !found->transposed;
        }));
    };
    for (auto const& item : model.named_parameters()) {
        add(item.key());
    }
    for (auto const& item : model.named_buffers()) {
        add(item.key());
    }
    return parts;
}

} // namespace

TEST_CASE("every tensor of a vit and of a resnet has a name in torchvision and timm") {
    auto const vit =
        nn::make_model({"vit", {{"layers", "2"}, {"width", "16"}, {"heads", "2"}}}, {{8, 8}, 3}, 0);
    auto const timm = names_in(nn::Package::timm, "vit", *vit);
    CHECK(timm.at("blocks.1.attn.qkv.weight") == 7); // three parts
    CHECK(timm.at("patch_embed.proj.bias") == 1);
    CHECK(timm.size() == 2 + 2 + 2 * 12 + 4);
    auto const torchvision = names_in(nn::Package::torchvision, "vit", *vit);
    CHECK(torchvision.at("encoder.layers.encoder_layer_0.self_attention.in_proj_bias") == 7);
    CHECK(torchvision.contains("class_token"));
    auto const resnet = nn::make_model({"resnet", {{"stem", "large"}}}, {{3, 32, 32}, 3}, 0);
    auto const names = names_in(nn::Package::torchvision, "resnet", *resnet);
    CHECK(names == names_in(nn::Package::timm, "resnet", *resnet));
    CHECK(names.contains("layer4.1.bn2.num_batches_tracked"));
    CHECK(names.size() == 122);
    CHECK(!nn::name_in(nn::Package::timm, "cnn", "output.weight"));
    CHECK(!nn::name_in(nn::Package::timm, "transformer", "output.weight"));
}
