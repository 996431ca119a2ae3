#include "fit.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <map>
#include <string>

#include "guard.hpp"

namespace lockstep::program {

namespace {

constexpr char const* name_dimension =
    "Export the model with dynamic_shapes that name this dimension (without dynamic_shapes, "
    "lockstep_export.save names only the first dimension, the batch)";

/// Compares a batch with what a program was exported for.
class Fit {
  public:
    explicit Fit(Description const& description) : description_(description) {}

    void require(Input const& input, at::Tensor const& tensor) {
        require_type(input, tensor);
        if (tensor.dim() != static_cast<std::int64_t>(input.sizes.size())) {
            differs(input,
                    concat("the batch has ", amount_of(tensor.dim(), "dimension"),
                           ", but the export has ", input.sizes.size()),
                    "Export the model with inputs that have as many dimensions as a batch");
        }
        for (std::size_t at = 0; at < input.sizes.size(); ++at) {
            auto const& wanted = input.sizes[at];
            auto const size = tensor.size(static_cast<std::int64_t>(at));
            if (wanted.kind == Size::Kind::fixed && size != wanted.value) {
                differs(input, concat("dimension ", at, " is ", size,
                                      ", but the export allows only ", wanted.value));
            }
            if (wanted.kind == Size::Kind::symbol) {
                require_symbol(input, at, size);
            }
        }
        named_[input.name] = tensor;
    }

    void require_guards() const {
        for (auto const& guard : description_.guards) {
            if (!holds(guard, named_)) {
                throw Error(ExitCode::usage,
                            {concat(description_.name, " cannot take this batch"),
                             concat("the export of this program assumed that ", guard),
                             name_dimension});
            }
        }
    }

  private:
    void require_type(Input const& input, at::Tensor const& tensor) const {
        if (tensor.scalar_type() != input.type) {
            throw Error(
                ExitCode::usage,
                {concat(description_.name, " cannot take a batch as its input named ", input.name),
                 concat("the program needs values of type ", c10::toString(input.type),
                        ", but the batch holds ", c10::toString(tensor.scalar_type())),
                 "Change the forward method so that it accepts int64 (Long) for whole numbers and "
                 "float32 "
                 "(Float) for others, and converts this input itself, as in mask.bool(); then "
                 "export the model again"});
        }
    }

    /// Within its bounds, and alike wherever it stands.
    void require_symbol(Input const& input, std::size_t at, std::int64_t size) {
        auto const& symbol = input.sizes[at].symbol;
        auto const [first, is_new] = symbols_.try_emplace(symbol, size);
        auto const range = description_.bounds.find(symbol);
        auto const bounds = range == description_.bounds.end() ? Bounds{} : range->second;
        if (first->second != size) {
            differs(input, concat("dimension ", at, " is ", size, ", but must be ", first->second,
                                  " like another dimension"));
        }
        if (size < bounds.minimum || size > bounds.maximum) {
            differs(input,
                    concat("dimension ", at, " is ", size, ", but the export ",
                           bounds.maximum == Bounds{}.maximum
                               ? concat("requires at least ", bounds.minimum)
                               : concat("allows only ", bounds.minimum, " to ", bounds.maximum)));
        }
    }

    [[noreturn]] void differs(Input const& input, std::string const& why,
                              char const* next = name_dimension) const {
        throw Error(
            ExitCode::usage,
            {concat(description_.name, " cannot take a batch as its input named ", input.name), why,
             next});
    }

    Description const& description_;
    std::map<std::string, at::Tensor> named_;
    std::map<std::string, std::int64_t> symbols_;
};

} // namespace

void require_fit(Description const& description, std::vector<at::Tensor> const& inputs) {
    if (inputs.size() != description.given() || inputs.empty()) {
        throw Error(ExitCode::usage,
                    {concat(description.name, " cannot take this batch"),
                     concat("the program needs ", amount_of(description.given(), "input"),
                            ", but the batch has ", inputs.size()),
                     "In data.inputs, name one dataset for each argument of the forward method; "
                     "samples with different numbers of rows need a further argument after theirs, "
                     "for their lengths. If the file has its own loss, name one dataset in "
                     "data.targets for each target of the loss"});
    }
    Fit fit(description);
    std::size_t at = 0;
    for (auto const& input : description.inputs) {
        if (input.kind == Input::Kind::user) {
            fit.require(input, inputs[at++]);
        }
    }
    fit.require_guards();
}

} // namespace lockstep::program
