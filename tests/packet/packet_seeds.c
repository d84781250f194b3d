// SPDX-License-Identifier: Apache-2.0
// Writes the parse cases as seeds for the packet fuzzers: packet_seeds DIRECTORY CONTROL [records], where CONTROL
// is the control byte in hex (the fuzz targets say what it means).
#include "tests/packet/parse_cases.h"

#include <stdio.h>
#include <stdlib.h>

#define SEED_BYTES_MAX 1500u

static struct frame frame;

// The file of a case holds it once behind a head, or, for the pipeline, twice as records: one burst each.
static int write_file(FILE *file, uint8_t control, bool as_records)
{
	const uint8_t head[2] = {control, 100};
	const uint8_t record[3] = {control, (uint8_t)frame.length, (uint8_t)(frame.length >> 8)};

	if (!as_records)
		return fwrite(head, sizeof(head), 1, file) != 1 ||
			fwrite(frame.bytes, frame.length, 1, file) != 1;
	for (unsigned i = 0; i < 2; i++) {
		if (fwrite(record, sizeof(record), 1, file) != 1 ||
			fwrite(frame.bytes, frame.length, 1, file) != 1)
			return 1;
	}
	return 0;
}

static int write_seed(
	const char *directory, uint8_t control, const struct parse_case *each, bool as_records)
{
	char path[4096];

	each->build(&frame);
	frame_finish(&frame);
	if (frame.length > SEED_BYTES_MAX)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", directory, each->description);
	FILE *file = fopen(path, "wb");

	if (file == NULL || write_file(file, control, as_records) != 0 || fclose(file) != 0) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int failures = 0;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: %s DIRECTORY CONTROL [records]\n", argv[0]);
		return 2;
	}
	uint8_t control = (uint8_t)strtoul(argv[2], NULL, 16);
	bool as_records = argc == 4;

	for (unsigned i = 0; i < parse_good_count; i++)
		failures += write_seed(argv[1], control, &parse_good_cases[i], as_records);
	for (unsigned i = 0; i < parse_bad_count; i++)
		failures += write_seed(argv[1], control, &parse_bad_cases[i], as_records);
	return failures != 0;
}
