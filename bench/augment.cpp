// Times lists of data.augment on one core, for bench/augment.py: for each line of input, a list, it
// makes them of 64 pictures of 224 x 224 with three channels, and prints milliseconds per picture.

#include "data/augment.hpp"

#include "base/text.hpp"

#include <chrono>
#include <iostream>
#include <numeric>
#include <string>

int main() {
    using Clock = std::chrono::steady_clock;
    constexpr std::int64_t pictures = 64;
    constexpr std::size_t elements = 3UL * 224 * 224;
    lockstep::data::SampleForm const form{
        .input = {.name = "inputs", .type = lockstep::h5::Type::u8, .shape = {3, 224, 224}},
        .axes = {.places = {1, 2}},
        .mean = {0.485, 0.456, 0.406},
        .std = {0.229, 0.224, 0.225}};
    lockstep::data::Batch batch;
    batch.indices.resize(pictures);
    std::iota(batch.indices.begin(), batch.indices.end(), 0);
    batch.fields.resize(2);
    std::int64_t epoch = 0;
    for (std::string list; std::getline(std::cin, list); ++epoch) {
        auto& values = batch.fields[0].reals;
        values.resize(pictures * elements);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = (static_cast<float>(i * 2654435761U % 256) / 255 - 0.45F) / 0.225F;
        }
        lockstep::data::Augmentation const change(list, form, 1);
        auto const begin = Clock::now();
        change.apply(batch, epoch);
        std::chrono::duration<double, std::milli> const taken = Clock::now() - begin;
        std::cout << taken.count() / pictures << std::endl;
    }
}
