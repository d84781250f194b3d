// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/persist.h"

#include "dataplane/io/files.h"
#include "dataplane/io/log.h"
#include "dataplane/io/publish.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define GATES_MAGIC  UINT64_C(0x31304147592d4752) // "RG-YGA01"
#define GATES_FORMAT 1u

// The file of gates: all pools in use, in order of id.
struct gates_header {
	uint64_t magic;
	uint32_t format;
	uint32_t count;
	uint64_t generation;
	uint8_t id_space[16];
	uint64_t checksum; // gates_checksum()
};

// Of the header before its checksum, and of the gates behind.
static uint64_t gates_checksum(const struct gates_header *header, const struct ipc_gate *gates)
{
	uint64_t front = XXH3_64bits(header, offsetof(struct gates_header, checksum));

	return XXH3_64bits_withSeed(gates, header->count * sizeof(*gates), front);
}

int persist_snapshot(const struct dataplane *dataplane)
{
	const struct publication *now = &dataplane->publication;
	struct snapshot_header header = *now->snapshot->header;
	const struct files_part parts[] = {
		{&header, sizeof(header)},
		{(const uint8_t *)now->image + sizeof(header), header.bytes - sizeof(header)},
	};

	// The gates in our image may have moved since it was sealed, so the checksum is made again.
	header.checksum = snapshot_checksum(now->image, header.bytes);
	return files_write(dataplane->options->run_dir, PERSIST_SNAPSHOT_NAME, parts, 2);
}

int persist_gates(const struct dataplane *dataplane)
{
	const struct snapshot *snapshot = dataplane->publication.snapshot;
	struct gates_header header = {.magic = GATES_MAGIC, .format = GATES_FORMAT};
	struct ipc_gate *gates = calloc(snapshot->pool_count + 1, sizeof(*gates));
	int result;

	if (gates == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < snapshot->pool_count; i++) {
		const struct snapshot_pool *pool = &snapshot->pools[i];

		if (!(pool->flags & SNAPSHOT_USED))
			continue;
		gates[header.count++] = (struct ipc_gate){
			.pool = i, .salt = pool->gate.salt, .word = snapshot_gate(pool)};
	}
	header.generation = snapshot->header->generation;
	memcpy(header.id_space, snapshot->header->id_space, sizeof(header.id_space));
	header.checksum = gates_checksum(&header, gates);
	const struct files_part parts[] = {
		{&header, sizeof(header)}, {gates, header.count * sizeof(*gates)}};

	result = files_write(dataplane->options->run_dir, PERSIST_GATES_NAME, parts, 2);
	free(gates);
	return result;
}

static int map_file(
	const struct dataplane *dataplane, const char *name, void **ret, uint64_t *ret_bytes)
{
	char path[FILES_PATH_BYTES];
	int result;

	snprintf(path, sizeof(path), "%s/%s", dataplane->options->run_dir, name);
	result = files_map_private(path, ret, ret_bytes);
	if (result != 0 && result != -ENOENT)
		log_warning("%s: %s", path, strerror(-result));
	return result;
}

static const char *check_gates(const struct gates_header *header, uint64_t bytes)
{
	if (bytes < sizeof(*header) || header->magic != GATES_MAGIC)
		return "not a file of gates";
	if (header->format != GATES_FORMAT)
		return "of another version";
	if (header->count > SNAPSHOT_POOLS_MAX ||
		bytes != sizeof(*header) + header->count * sizeof(struct ipc_gate))
		return "cut";
	if (header->checksum != gates_checksum(header, (const struct ipc_gate *)(header + 1)))
		return "damaged";
	return NULL;
}

// Sets the gates of a file that was checked. Its pools are more than one message may carry, hence one by one.
static void set_gates(struct dataplane *dataplane, const struct gates_header *header)
{
	const struct ipc_gate *gates = (const struct ipc_gate *)(header + 1);
	struct ipc_gates *one = calloc(1, sizeof(*one));
	struct snapshot_error error;

	for (uint32_t i = 0; i < header->count && one != NULL; i++) {
		one->generation = header->generation;
		one->count = 1;
		one->gates[0] = gates[i];
		if (publish_gates(dataplane, one, &error) != 0)
			log_warning(PERSIST_GATES_NAME ": %s", error.text);
	}
	free(one);
}

static void load_gates(struct dataplane *dataplane)
{
	const struct snapshot_header *header = dataplane->publication.snapshot->header;
	const struct gates_header *gates;
	const char *fault;
	uint64_t bytes;
	void *memory;

	if (map_file(dataplane, PERSIST_GATES_NAME, &memory, &bytes) != 0)
		return;
	gates = memory;
	fault = check_gates(gates, bytes);
	if (fault != NULL)
		log_warning("%s/" PERSIST_GATES_NAME ": %s; the snapshot's own gates stand",
			dataplane->options->run_dir, fault);
	else if (gates->generation == header->generation &&
		memcmp(gates->id_space, header->id_space, sizeof(gates->id_space)) == 0)
		set_gates(dataplane, gates);
	munmap(memory, bytes);
}

void persist_load(struct dataplane *dataplane)
{
	struct snapshot_error error;
	uint64_t bytes;
	void *memory;

	if (map_file(dataplane, PERSIST_SNAPSHOT_NAME, &memory, &bytes) != 0)
		return;
	if (publish_image(dataplane, memory, bytes, &error) != 0) {
		log_warning("%s/" PERSIST_SNAPSHOT_NAME ": %s; waiting for ringwayd",
			dataplane->options->run_dir, error.text);
		munmap(memory, bytes);
		return;
	}
	load_gates(dataplane);
	log_notice("generation %" PRIu64 " is back in use from %s/" PERSIST_SNAPSHOT_NAME,
		dataplane->publication.snapshot->header->generation, dataplane->options->run_dir);
}
