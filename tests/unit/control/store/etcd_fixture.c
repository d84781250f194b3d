// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/control/store/etcd_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct etcd_cluster cluster;
struct config_store config;
static struct config_store good;

bool fixture_begin(unsigned members, enum etcd_kind kind)
{
	good = (struct config_store){.type = CONFIG_STORE_ETCD,
		.user = "",
		.password_file = "",
		.tls = {.ca = "", .certificate = "", .key = ""}};
	if (etcd_cluster_start(&cluster, members, kind) != 0)
		return false;
	good.endpoints = cluster.endpoints;
	good.endpoint_count = members;
	if (kind != ETCD_PLAIN) {
		good.user = ETCD_USER;
		good.password_file = etcd_file(&cluster, "password");
		good.tls = (struct config_tls){.ca = etcd_file(&cluster, "ca.pem"),
			.certificate = etcd_file(&cluster, "node.pem"),
			.key = etcd_file(&cluster, "node.key")};
		int fd = open(good.password_file, O_WRONLY | O_CREAT, 0400);

		if (fd < 0 || dprintf(fd, "%s\n", ETCD_PASSWORD) < 0 ||
			etcd_cluster_users(&cluster) != 0)
			return false;
		close(fd);
	}
	fixture_reset();
	return true;
}

void fixture_end(void)
{
	etcd_cluster_stop(&cluster);
	if (cluster.kind == ETCD_PLAIN)
		return;
	free((char *)good.password_file);
	free((char *)good.tls.ca);
	free((char *)good.tls.certificate);
	free((char *)good.tls.key);
}

void fixture_reset(void)
{
	static char prefix[32];
	static unsigned number;

	snprintf(prefix, sizeof(prefix), ETCD_USER_PREFIX "%u", ++number);
	config = good;
	config.prefix = prefix;
}

struct store *fixture_open(const char *node)
{
	char error[STORE_ERROR_BYTES];
	struct store *store = NULL;

	if (store_open(&config, node, &store, error) < 0)
		printf("# %s\n", error);
	return store;
}

uint64_t fixture_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
