// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without an engine over files, or over all files of directories: the regression run of a corpus.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned inputs;

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat info;
	uint8_t *data;
	size_t size;

	if (file == NULL || fstat(fileno(file), &info) != 0) {
		perror(path);
		if (file != NULL)
			fclose(file);
		return 1;
	}
	// Exactly as long as the file, so that a read past the end is one past the allocation.
	size = (size_t)info.st_size;
	data = malloc(size ? size : 1);
	if (data == NULL || fread(data, 1, size, file) != size) {
		perror(path);
		fclose(file);
		free(data);
		return 1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	inputs++;
	return 0;
}

static int run_directory(const char *path, DIR *directory)
{
	struct dirent *entry;
	int failures = 0;

	while ((entry = readdir(directory)) != NULL) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		failures += run_file(name);
	}
	return failures;
}

int main(int argc, char **argv)
{
	int failures = 0;

	for (int i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);

		if (directory != NULL) {
			failures += run_directory(argv[i], directory);
			closedir(directory);
		} else {
			failures += run_file(argv[i]);
		}
	}
	// An empty corpus proves nothing.
	printf("1..1\n%s 1 - %u inputs\n", failures || inputs == 0 ? "not ok" : "ok", inputs);
	return failures || inputs == 0 ? 1 : 0;
}
