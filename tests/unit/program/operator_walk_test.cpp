/// Calls every operator that exported programs may call with arguments that do not fit it, each
/// operator in a process of its own, with tensors whose memory ends at a page that nobody may read.

#include "base/text.hpp"
#include "program/checked.hpp"
#include "program/graph.hpp"
#include "program/operators.hpp"
#include "program/sized.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "long_form.hpp"

using namespace lockstep;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t largest_tensor = 64 << 20;
constexpr std::int64_t max_summed = 64 << 20;

/// Memory that ends right before a page without access, and begins right after bytes that are
/// compared when it is given back.
class FencedMemory final : public at::Allocator {
  public:
    at::DataPtr allocate(std::size_t bytes) override {
        if (bytes > largest_tensor) {
            TORCH_CHECK_WITH(OutOfMemoryError, false, "more memory than the test gives");
        }
        auto const used = (bytes + alignment - 1) / alignment * alignment;
        auto const inner = (used + page - 1) / page * page + page; // the first for the Fence
        auto* const base = static_cast<char*>(::mmap(nullptr, inner + page, PROT_READ | PROT_WRITE,
                                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base == MAP_FAILED) {
            TORCH_CHECK_WITH(OutOfMemoryError, false, "no more memory");
        }
        ::mprotect(base + inner, page, PROT_NONE);
        auto const lead = inner - used;
        std::memset(base + sizeof(Block), filler, lead - sizeof(Block));
        auto* const block = new (base) Block{inner + page, lead};
        return {base + lead, block, &release, at::Device(at::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void* to, void const* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

  private:
    struct Block {
        std::size_t mapped;
        std::size_t lead;
    };
    static constexpr std::size_t alignment = 16; // of vector instructions that want it
    static constexpr int filler = 0x5b;

    static void release(void* context) {
        auto const* const block = static_cast<Block const*>(context);
        auto const* const base = static_cast<char const*>(context);
        if (std::any_of(base + sizeof(Block), base + block->lead,
                        [](char byte) { return byte != filler; })) {
            std::abort(); // something was written before the tensor
        }
        ::munmap(context, block->mapped);
    }
};

using Draw = std::mt19937;

int below(Draw& draw, int end) {
    return static_cast<int>(draw() % static_cast<unsigned>(end));
}
bool one_in(Draw& draw, int count) {
    return below(draw, count) == 0;
}
template <class Value, std::size_t count>
Value any_of(Draw& draw, std::array<Value, count> const& values) {
    return values.at(static_cast<std::size_t>(below(draw, count)));
}

constexpr std::int64_t huge = std::int64_t{1} << 40;

/// The arguments of one call: mostly of sizes and types that go together, as others are refused
/// early, but with something that does not fit.
class Arguments {
  public:
    Arguments(Draw& draw, c10::FunctionSchema const& schema) : draw_(draw) {
        sizes_ = extents(1 + below(draw, 5));
        type_ = one_in(draw, 3) ? any_type() : at::kFloat;
        fits_ = below(draw, 4); // how often something is as it should be
        with_gradients_ = !one_in(draw, 3);
        for (auto const& argument : schema.arguments()) {
            auto const& name = argument.name();
            bool const plain = argument.default_value() && !one_in(draw_, 3);
            values.push_back(plain ? *argument.default_value()
                                   : value(argument.real_type(), name, argument.N().value_or(0)));
        }
    }

    std::vector<c10::IValue> values;

  private:
    std::vector<std::int64_t> extents(int count) {
        std::vector<std::int64_t> sizes;
        for (int at = 0; at < count; ++at) {
            sizes.push_back(any_of(draw_, std::array<std::int64_t, 10>{1, 2, 3, 3, 4, 5, 6, 8, 17,
                                                                       one_in(draw_, 4) ? 0 : 2}));
        }
        return sizes;
    }
    at::ScalarType any_type() {
        return any_of(draw_, std::array{at::kFloat, at::kFloat, at::kDouble, at::kLong, at::kInt,
                                        at::kBool, at::kByte, at::kHalf, at::kBFloat16, at::kShort,
                                        at::kChar, at::kComplexFloat, at::kComplexDouble});
    }
    bool fits() { return below(draw_, 4) <= fits_; }

    static bool holds(std::string_view text, std::string_view part) {
        return text.find(part) != std::string_view::npos;
    }

    std::vector<std::int64_t> sizes_for(std::string const& name) {
        auto const channels = sizes_.size() > 1 ? sizes_[1] : sizes_[0];
        if (!fits()) {
            return extents(below(draw_, 6));
        }
        if (holds(name, "running") || holds(name, "bias") || holds(name, "mean") ||
            holds(name, "invstd") || holds(name, "var") || holds(name, "scale") ||
            (holds(name, "weight") && one_in(draw_, 2))) {
            return {fits() ? channels : 1 + below(draw_, 9)};
        }
        if (holds(name, "index") || holds(name, "indices") || holds(name, "offsets") ||
            holds(name, "lengths") || holds(name, "target") || holds(name, "repeats")) {
            return one_in(draw_, 2) ? extents(1) : one_in(draw_, 2) ? extents(2) : sizes_;
        }
        auto sizes = sizes_;
        if (one_in(draw_, 4)) {
            sizes[static_cast<std::size_t>(below(draw_, static_cast<int>(sizes.size())))] =
                below(draw_, 7);
        }
        if (one_in(draw_, 6)) {
            std::reverse(sizes.begin(), sizes.end());
        }
        if (one_in(draw_, 8)) {
            sizes.pop_back();
        }
        return sizes;
    }
    at::Tensor whole(std::vector<std::int64_t> const& sizes, at::ScalarType type) {
        auto tensor = at::empty(sizes, at::kLong);
        auto const mode = below(draw_, 4);
        auto* const numbers = tensor.mutable_data_ptr<std::int64_t>();
        for (std::int64_t at = 0; at < tensor.numel(); ++at) {
            numbers[at] = below(draw_, 4);
            if (mode == 1 && one_in(draw_, 4)) {
                numbers[at] = any_of(
                    draw_, std::array<std::int64_t, 8>{-1, -7, 100, 100000, huge, -huge,
                                                       std::numeric_limits<std::int64_t>::max(),
                                                       std::numeric_limits<std::int64_t>::min()});
            }
        }
        return tensor.to(type);
    }
    at::Tensor tensor(std::string const& name) {
        auto const sizes = sizes_for(name);
        bool const counts = holds(name, "ind") || holds(name, "offset") || holds(name, "length") ||
                            holds(name, "target") || holds(name, "repeats") ||
                            holds(name, "batch_sizes") || holds(name, "bins");
        auto const type = counts && fits() ? (one_in(draw_, 5) ? at::kInt : at::kLong)
                          : fits()         ? type_
                                           : any_type();
        bool const is_real = c10::isFloatingType(type) || c10::isComplexType(type);
        auto result =
            is_real ? at::rand(sizes, at::kDouble).mul(3).sub(1).to(type) : whole(sizes, type);
        switch (below(draw_, 12)) {
        case 0:
            result = result.dim() > 1 ? result.transpose(0, -1) : result;
            break;
        case 1: // stride 0
            result = result.dim() > 0 && result.size(0) > 0 ? result.narrow(0, 0, 1).expand(sizes)
                                                            : result;
            break;
        case 2:
            result = result.dim() > 0 && result.size(-1) > 1
                         ? result.slice(-1, 0, result.size(-1), 2)
                         : result;
            break;
        default:
            break;
        }
        if (with_gradients_ && is_real && !one_in(draw_, 3)) {
            result = result.detach().set_requires_grad(true);
        }
        return result;
    }
    std::int64_t number() {
        if (one_in(draw_, 12)) {
            return any_of(draw_,
                          std::array<std::int64_t, 9>{-1, -2, 7, 64, 1000, 1 << 30, huge, -huge,
                                                      std::numeric_limits<std::int64_t>::min()});
        }
        return below(draw_, 4);
    }
    double real() {
        return any_of(draw_, std::array<double, 12>{0, 1, 0.5, 0.1, 2, 1, 0.5, -1, 1e-5, 1e300,
                                                    std::numeric_limits<double>::infinity(),
                                                    std::numeric_limits<double>::quiet_NaN()});
    }
    std::vector<std::int64_t> numbers(std::string const& name, int count) {
        if (count == 0 || !fits()) {
            auto const dims = static_cast<int>(sizes_.size());
            count =
                any_of(draw_, std::array{1, 2, 3, std::max(dims - 2, 1), dims, below(draw_, 6)});
        }
        if (holds(name, "size") && one_in(draw_, 3)) {
            return sizes_;
        }
        std::vector<std::int64_t> result;
        bool const same = one_in(draw_, 2);
        auto const first = number();
        for (int at = 0; at < count; ++at) {
            result.push_back(same ? first : number());
        }
        return result;
    }
    std::string text(std::string const& name) {
        if (name == "reduce") {
            return any_of(draw_, std::array<char const*, 7>{"sum", "prod", "mean", "amax", "amin",
                                                            "add", "multiply"});
        }
        return any_of(draw_, std::array<char const*, 9>{"none", "same", "valid", "trunc", "floor",
                                                        "tanh", "linear", "ij", "reduced"});
    }

    c10::IValue value(c10::TypePtr const& type, std::string const& name, int count) {
        switch (type->kind()) {
        case c10::TypeKind::OptionalType:
            return one_in(draw_, 3)
                       ? c10::IValue()
                       : value(type->castRaw<c10::OptionalType>()->getElementType(), name, count);
        case c10::TypeKind::TensorType:
            return tensor(name);
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
            return number();
        case c10::TypeKind::FloatType:
            return real();
        case c10::TypeKind::BoolType:
            return one_in(draw_, 2);
        case c10::TypeKind::NumberType:
            return one_in(draw_, 2) ? c10::IValue(number()) : c10::IValue(real());
        case c10::TypeKind::StringType:
            return text(name);
        case c10::TypeKind::ScalarTypeType:
            return static_cast<std::int64_t>(any_type());
        case c10::TypeKind::LayoutType:
            return static_cast<std::int64_t>(c10::kStrided);
        case c10::TypeKind::MemoryFormatType:
            return static_cast<std::int64_t>(below(draw_, 4));
        case c10::TypeKind::DeviceObjType:
            return c10::Device(c10::kCPU);
        case c10::TypeKind::ListType:
            return list(type->castRaw<c10::ListType>()->getElementType(), name, count);
        default:
            return {};
        }
    }
    c10::IValue list(c10::TypePtr const& element, std::string const& name, int count) {
        auto const kind = element->kind();
        if (kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType) {
            return numbers(name, count);
        }
        std::vector<c10::IValue> items;
        auto const length = count > 0 && fits() ? count : below(draw_, 5);
        for (int at = 0; at < length; ++at) {
            items.push_back(value(element, name, 0));
        }
        return program::list_of(element, items);
    }

    Draw& draw_;
    std::vector<std::int64_t> sizes_;
    at::ScalarType type_ = at::kFloat;
    int fits_ = 0;
    bool with_gradients_ = false;
};

void describe(std::ostream& out, c10::IValue const& value) {
    if (value.isTensor()) {
        auto const& tensor = value.toTensor();
        out << c10::toString(tensor.scalar_type()) << tensor.sizes();
        if (!tensor.is_contiguous()) {
            out << "strides" << tensor.strides();
        }
        if (tensor.requires_grad()) {
            out << "*";
        }
        if (tensor.numel() > 0 && tensor.numel() < 9 && tensor.scalar_type() == at::kLong) {
            auto const flat = tensor.contiguous();
            out << c10::IntArrayRef(flat.const_data_ptr<std::int64_t>(),
                                    static_cast<std::size_t>(flat.numel()));
        }
    } else if (value.isTensorList() || value.isList()) {
        out << "{";
        for (auto const& each : value.toListRef()) {
            describe(out, each);
            out << " ";
        }
        out << "}";
    } else {
        out << value;
    }
}

void find_tensors(c10::IValue const& value, std::vector<at::Tensor>& found) {
    if (value.isTensor() && value.toTensor().defined()) {
        found.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        for (auto const& each : value.toTensorVector()) {
            found.push_back(each);
        }
    }
}

/// As a step of training does: forward, and backward of what has a gradient.
void call(c10::OperatorHandle const& op, std::vector<c10::IValue> stack) {
    auto instead = program::checked(op);
    if (!instead) {
        instead = program::sized(op);
    }
    if (instead) {
        (*instead)(stack);
    } else {
        op.callBoxed(stack);
    }
    std::vector<at::Tensor> outputs;
    for (auto const& each : stack) {
        find_tensors(each, outputs);
    }
    at::Tensor total;
    for (auto const& each : outputs) {
        // A view may repeat an element billions of times: adding them up takes as long as it says.
        if (each.requires_grad() && each.is_floating_point() && each.numel() < max_summed) {
            auto const sum = each.sum().to(at::kDouble);
            total = total.defined() ? total + sum : sum;
        }
    }
    if (total.defined()) {
        total.backward();
    }
}

constexpr std::size_t longest_text = 4000;

/// What the process that calls says to the one that waits for it.
struct Shared {
    std::size_t at = 0; ///< which operator
    unsigned draw = 0;
    std::array<char, longest_text> text{};
};

using Operators = std::vector<c10::OperatorHandle>;

[[noreturn]] void call_all(Operators const& all, unsigned draws, Shared& shared) {
    constexpr int longest_s = 20;
    struct rlimit const none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    for (auto const fault : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) {
        ::signal(fault, SIG_DFL); // and not the test's
    }
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO); // warnings of LibTorch
    for (; shared.at < all.size(); ++shared.at, shared.draw = 0) {
        for (; shared.draw < draws; ++shared.draw) {
            Draw draw(shared.draw);
            at::manual_seed(shared.draw);
            struct itimerval const longest{{0, 0}, {longest_s, 0}}; // SIGPROF: without end
            ::setitimer(ITIMER_PROF, &longest, nullptr);
            try {
                Arguments const arguments(draw, all[shared.at].schema());
                std::ostringstream text;
                for (auto const& each : arguments.values) {
                    describe(text, each);
                    text << "; ";
                }
                auto const words = text.str().substr(0, longest_text - 1);
                std::memcpy(shared.text.data(), words.c_str(), words.size() + 1);
                call(all[shared.at], arguments.values);
            } catch (std::exception const&) { // refused, as it should be
            }
        }
    }
    std::_Exit(0);
}

/// All that programs may call; `one_of`: the first of so many.
Operators operators_to_call(std::size_t one_of) {
    auto names = c10::Dispatcher::singleton().getAllOpNames();
    std::ranges::sort(names, {}, [](auto const& name) { return c10::toString(name); });
    constexpr std::string_view library = "aten::";
    Operators all;
    for (std::size_t at = 0; at < names.size(); at += one_of) {
        auto const& [name, overload] = names[at];
        if (!name.starts_with(library)) {
            continue;
        }
        auto const found =
            program::find_operator(concat("torch.ops.aten.", name.substr(library.size()), ".",
                                          overload.empty() ? "default" : overload));
        if (auto const* const op = std::get_if<c10::OperatorHandle>(&found)) {
            all.push_back(*op);
        }
    }
    return all;
}

} // namespace

TEST_CASE("no operator of a program ends the process, whatever it is given") {
    static FencedMemory memory;
    constexpr std::uint8_t above_others = 100;
    c10::SetCPUAllocator(&memory, above_others);
    at::set_num_threads(1);
    auto* const place =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(place != MAP_FAILED);
    auto& shared = *new (place) Shared;
    auto const operators = operators_to_call(test::is_long() ? 1 : 4);
    unsigned const draws = test::is_long() ? 1000 : 30;
    REQUIRE(operators.size() > 100);
    constexpr int max_faults = 4; // of one operator
    int faults = 0;
    std::size_t faulty = 0; // the operator that had them
    while (shared.at < operators.size()) {
        auto const child = ::fork();
        if (child == 0) {
            call_all(operators, draws, shared);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status == 0) {
            break;
        }
        INFO(c10::toString(operators[shared.at].operator_name())
             << ", draw " << shared.draw << ", ends with "
             << (WIFSIGNALED(status) ? "signal " : "code ")
             << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << ": "
             << shared.text.data());
        CHECK(status == 0);
        faults = shared.at == faulty ? faults + 1 : 1;
        faulty = shared.at;
        ++shared.draw;
        if (faults == max_faults) {
            ++shared.at;
            shared.draw = 0;
        }
    }
}
