#pragma once
// Seeded random numbers and distributions of our own, so that a seed gives the same run on every
// machine.

#include <array>
#include <cstdint>

namespace baton {

// xoshiro256** seeded through splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2018). A stream number gives independent sequences from one seed.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0);

  uint64_t next();
  // Uniform in [0, 1) with 53 bits.
  double uniform();
  // Uniform in [0, bound); bound > 0. Without modulo bias (Lemire's method).
  uint64_t below(uint64_t bound);
  // Exponential with the given mean > 0.
  double exponential(double mean);
  // Standard normal, by the polar method.
  double normal();
  // Gamma with shape > 0 and scale > 0 (Marsaglia and Tsang, 2000).
  double gamma(double shape, double scale);
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace baton
