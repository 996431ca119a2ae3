#include "lockstep/nn/registry.hpp"
#include "nn/models/names_elsewhere.hpp"

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
