// SPDX-License-Identifier: Apache-2.0
// The fleet's one hash: 64 bits, non-linear, keyed. CRC-32 and Toeplitz are linear: a gate or a
// table that uses them again over the same key picks an arc of the ring, not a sample of the flows
// (docs/ring.md section 4).
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Bytes of a seed that the operator sets: the fleet's, or a ring's own. The same on every node of a fleet and secret:
// who knows it can aim flows at one backend. All zero stands for none.
#define HASH_SEED_BYTES 16

// The key schedule: the seed spread over the words that the folds take.
struct hash_seed {
	uint64_t word[4];
};

// One step of splitmix64; a bijection of 64-bit words.
static inline uint64_t hash_splitmix64(uint64_t state)
{
	state += 0x9e3779b97f4a7c15u;
	state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
	state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
	return state ^ (state >> 31);
}

// Spreads the fleet seed over the key schedule.
// seed: HASH_SEED_BYTES bytes, read as two little-endian words, so every CPU makes the same schedule.
static inline struct hash_seed hash_seed_expand(const uint8_t seed[HASH_SEED_BYTES])
{
	uint64_t low, high;
	struct hash_seed ret;

	memcpy(&low, seed, sizeof(low));
	memcpy(&high, seed + sizeof(low), sizeof(high));
	low = le64toh(low);
	high = le64toh(high);
	ret.word[0] = hash_splitmix64(low);
	ret.word[1] = hash_splitmix64(high ^ ret.word[0]);
	ret.word[2] = hash_splitmix64(low ^ ret.word[1]);
	ret.word[3] = hash_splitmix64(high ^ ret.word[2]);
	return ret;
}

// Multiplies two words to 128 bits and folds the halves together.
static inline uint64_t hash_fold64(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Mixes 32 bits into 32 bits: a non-linear bijection (the finaliser of MurmurHash3).
static inline uint32_t hash_mix32(uint32_t value)
{
	value ^= value >> 16;
	value *= 0x85ebca6bu;
	value ^= value >> 13;
	value *= 0xc2b2ae35u;
	value ^= value >> 16;
	return value;
}

// Hashes a short byte string, such as a QUIC connection ID.
// length: any; the intended use is 1..20 bytes (RFC 9000 section 17.2).
// Returns 64 bits; the high 32 go to the ring, as with flow_hash().
// Cost: one fold per 16 bytes and two more.
static inline uint64_t hash_bytes(const void *data, size_t length, const struct hash_seed *seed)
{
	const uint8_t *bytes = data;
	uint64_t state = seed->word[2] ^ (uint64_t)length;
	size_t left = length;

	while (left > 0) {
		uint64_t word[2] = {0, 0};
		size_t taken = left < sizeof(word) ? left : sizeof(word);

		memcpy(word, bytes, taken);
		state = hash_fold64(
			le64toh(word[0]) ^ seed->word[0] ^ state, le64toh(word[1]) ^ seed->word[1]);
		bytes += taken;
		left -= taken;
	}
	return hash_fold64(state ^ seed->word[3], seed->word[2] | 1);
}

// The mark of a seed: tells two seeds apart and says of neither what it is, since 2^64 seeds have any one mark. Digests
// and texts for people hold marks only.
// Returns 0 for the seed that is all zero, and for no other that anybody will meet.
static inline uint64_t hash_seed_mark(const uint8_t seed[HASH_SEED_BYTES])
{
	static const uint8_t none[HASH_SEED_BYTES];
	static const uint8_t domain[HASH_SEED_BYTES] = {
		'r', 'i', 'n', 'g', 'w', 'a', 'y', ' ', 's', 'e', 'e', 'd', 'm', 'a', 'r', 'k'};
	struct hash_seed fixed = hash_seed_expand(domain);

	if (memcmp(seed, none, sizeof(none)) == 0)
		return 0;
	return hash_bytes(seed, HASH_SEED_BYTES, &fixed);
}
